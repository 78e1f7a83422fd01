"""Peak rates of accelerators, from `chips.json` or a user's file in the same format."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.ground.errors import UserError
from jumar.ground.json_text import parse_json
from jumar.ground.paths import open_to_read
from jumar.profiling.profile import AI_CORES, Profile
from jumar.profiling.views.view import VIEWS, Options

_TABLE = Path(__file__).with_name("chips.json")
_MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Chip:
    """An accelerator and its peak rates.

    Args:
        name: The name to display.
        matches: Parts of device names, in lower case, that identify this chip.
        cube_tflops: Peak rate of the matrix unit by input dtype, in 1e12 operations per second.
        vector_tflops: Peak rate of everything else.
        hbm_gb_s: Memory bandwidth in 1e9 bytes per second.
        cube_cores: Number of matrix cores, or of multiprocessors of a GPU.
        vector_cores: Number of vector cores.
        launch_us: The minimum time to start an op.
        estimate: Whether the rates were computed rather than taken from a data sheet.
        source: The source of the rates.
        unverified: Fields that were not checked against a source: `hbm_gb_s`,
            `cube_tflops.FLOAT`, or `all`.
        assumed: Whether the chip was inferred from the cores used.
    """

    name: str
    matches: tuple[str, ...]
    cube_tflops: Mapping[str, float]
    vector_tflops: float
    hbm_gb_s: float
    cube_cores: int
    vector_cores: int
    launch_us: float
    estimate: bool
    source: str
    unverified: tuple[str, ...] = ()
    assumed: bool = False

    def cube_peak(self, dtype: str) -> float:
        """Peak operations per second of the matrix unit; unknown dtypes count as FLOAT."""
        rates = self.cube_tflops
        return 1e12 * rates.get(dtype, rates.get("FLOAT", max(rates.values())))

    @property
    def summary(self) -> str:
        """The label and the source of the rates."""
        return f"{self.label}: {self.source}"

    @property
    def label(self) -> str:
        """The chip's name, and how reliable its rates are."""
        assumption = " (assumed from the cores that ops used)" if self.assumed else ""
        estimate = ", estimate" if self.estimate else ""
        unverified = f", unverified {', '.join(self.unverified)}" if self.unverified else ""
        return f"{self.name}{assumption}{estimate}{unverified}"


def read_chips(path: Path | None = None) -> tuple[Chip, ...]:
    """The chips of a file; without a file, the built-in ones."""
    path = path or _TABLE
    with open_to_read(path) as file:
        text = file.read(_MAX_FILE_BYTES)
    return _chips(text, str(path))


def _chips(text: bytes | str, where: str) -> tuple[Chip, ...]:
    """The chips of a table in JSON."""
    try:
        rows = parse_json(text)["chips"]
        return tuple(_chip(row) for row in rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"not a chip table: {type(error).__name__} {error}",
            where=where,
            todo='It has the form {"chips": [{"name": ..., "matches": [...], "cube_tflops": '
            '{"FLOAT16": ...}, "vector_tflops": ..., "hbm_gb_s": ..., "cube_cores": ..., '
            '"vector_cores": ..., "launch_us": ..., "source": ...}]}.',
        ) from error


def _chip(row: Mapping[str, Any]) -> Chip:
    rates = {str(dtype): float(rate) for dtype, rate in row["cube_tflops"].items()}
    chip = Chip(
        name=str(row["name"]),
        matches=tuple(str(part).lower() for part in row["matches"]),
        cube_tflops=rates,
        vector_tflops=float(row["vector_tflops"]),
        hbm_gb_s=float(row["hbm_gb_s"]),
        cube_cores=int(row["cube_cores"]),
        vector_cores=int(row["vector_cores"]),
        launch_us=float(row["launch_us"]),
        estimate=bool(row.get("estimate", False)),
        source=str(row.get("source", "the user's file")),
        unverified=_fields(row.get("unverified", False)),
    )
    positive = (*rates.values(), chip.vector_tflops, chip.hbm_gb_s)
    if not rates or not all(0 < rate < 1e9 for rate in positive):
        raise ValueError(f"{chip.name}: rates must be numbers above 0")
    return chip


def _fields(value: object) -> tuple[str, ...]:
    """Field names; `true` in a file means all of them."""
    if isinstance(value, bool):
        return ("all",) if value else ()
    if not isinstance(value, list):
        raise TypeError(f"unverified: {value!r} is neither true nor a list of fields")
    return tuple(str(name) for name in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def chip_of(profile: Profile, override: Path | None = None) -> Chip | None:
    """The chip of a profile: the one it names, else a guess for NPUs; None if unknown.

    A single chip in the user's file is used whatever chip the capture names, and so are the
    measured rates of a CPU capture.
    """
    listed_chips = read_chips(override) if override is not None else _measured(profile)
    if len(listed_chips) == 1:
        return listed_chips[0]
    chips = (*listed_chips, *read_chips())
    chip_name = "".join(profile.chip.lower().split())
    for chip in chips:
        if any("".join(part.split()) in chip_name for part in chip.matches if chip_name):
            return chip
    if listed_chips:
        names = ", ".join(chip.name for chip in listed_chips)
        raise UserError(
            f"the profile's chip '{profile.chip or 'unknown'}' matches none of: {names}",
            where=str(override),
            todo="Keep a single chip in the file, or add its name to `matches`.",
        )
    return _guess(profile, chips) if profile.kind == "npu" else None


def peak_rates(profile: Profile, names: Iterable[str], options: Options) -> str:
    """The chip whose peak rates the views use, and their source; empty if they use none.

    Args:
        profile: The profile.
        names: Names of the views.
        options: May name a chip table of the user.
    """
    if not any(VIEWS[name].uses_rates for name in names):
        return ""
    chip = chip_of(profile, options.chip)
    return "" if chip is None else chip.summary


def _measured(profile: Profile) -> tuple[Chip, ...]:
    """The rates measured in a CPU capture; empty if there are none or they are invalid."""
    table = profile.statistics.get("chips")
    if table is None or not table.height or profile.kind != "cpu":
        return ()
    try:
        return _chips(str(table["json"][0]), profile.source)[:1]
    except UserError:
        # Views that need rates report that they are missing.
        return ()


_MAX_CORES: Final = 48
"""No chip has more cores of one kind: the largest has 24 cube and 48 vector cores."""


def _guess(profile: Profile, chips: tuple[Chip, ...]) -> Chip | None:
    """The Ascend chip inferred from the cores that ops used.

    Since the 910B, chips have separate vector cores, and 20 or 24 cube cores; databases name only
    the family (`Ascend910B`). `MIX_AIC` and `MIX_AIV` exist only there. Ops with more blocks than
    any chip has cores are ignored.
    """
    # Filtering all fifty columns of a million ops would take a third of a gigabyte.
    blocks = profile.ops.select("core", "block_num")
    max_blocks = {
        str(core): int(number or 0)
        for core, number in blocks.filter(pl.col("block_num").fill_null(0) <= _MAX_CORES)
        .group_by("core")
        .agg(pl.col("block_num").max())
        .rows()
    }
    cores = {str(core) for core in profile.ops["core"].unique()}
    if cores.isdisjoint(AI_CORES):
        return None
    has_vector_cores = max_blocks.get("AI_VECTOR_CORE", 0) > 0 or bool(
        {"MIX_AIC", "MIX_AIV"} & cores
    )
    has_fewer_cores = (
        max_blocks.get("AI_CORE", 0) <= 20 and max_blocks.get("AI_VECTOR_CORE", 0) <= 40
    )
    name = (
        ("Ascend 910B3" if has_fewer_cores else "Ascend 910B2")
        if has_vector_cores
        else "Ascend 910A"
    )
    return next((replace(chip, assumed=True) for chip in chips if chip.name == name), None)
