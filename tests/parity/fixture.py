"""Reader of the parity fixtures: numbers made by running the original TensorFlow code.

The rules by which variables and inputs are made again from their names are those of the
fixtures' README, sections 1 to 3.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SKIP_ABOVE = 0.02
"""Results whose measured sensitivity to float32 rounding is larger are noise (section 3)."""


class ParityCase:
    """One `.npz` fixture with its variables, inputs and results."""

    def __init__(self, path: Path) -> None:
        self.arrays = np.load(path, allow_pickle=False)
        self.meta: dict[str, Any] = json.loads(self.arrays["meta"].tobytes())
        self.config: dict[str, Any] = self.meta["config"]

    def _random(self, tag: str) -> np.random.RandomState:
        return np.random.RandomState(
            (zlib.crc32(tag.encode("utf-8")) ^ self.meta["seed"]) & 0xFFFFFFFF
        )

    def variables(self, group: str) -> dict[str, NDArray[np.float32]]:
        """The variables of a group by their TensorFlow names, in the order of the graph."""
        made: dict[str, NDArray[np.float32]] = {}
        for name, shape, kind, offset, scale in self.meta["variables"][group]:
            values = self._random(name).standard_normal(shape)
            if kind == "abs":
                values = np.abs(values)
            made[name] = np.asarray(offset + scale * values, dtype=np.float32)
        return made

    def input(self, name: str) -> NDArray[Any]:
        """An input by its name: stored, or made by its rule."""
        rule = self.meta["inputs"][name]
        if rule == "stored" or (isinstance(rule, dict) and rule.get("kind") == "stored"):
            return self.arrays[f"in/{name}"]
        random, shape = self._random(f"input:{name}"), rule["shape"]
        low, high = rule.get("lo", 0.0), rule.get("hi", 1.0)
        if rule["kind"] == "normal":
            values = low + high * random.standard_normal(shape)
        elif rule["kind"] == "uniform":
            values = low + (high - low) * random.random_sample(shape)
        elif rule["kind"] == "randint":
            values = random.randint(low, high, size=shape)
        else:
            raise ValueError(f"unknown rule {rule['kind']!r} of input {name!r}")
        return np.asarray(values).astype(rule["dtype"])

    def tolerance(self, key: str) -> float | None:
        """The allowed error relative to the largest stored magnitude; None where the result is
        noise by its measured sensitivity."""
        sensitivity = self.meta["results"][key].get("sensitivity") or 0.0
        return None if sensitivity > SKIP_ABOVE else max(1e-5, 20 * sensitivity)

    def picked(self, key: str, ours: NDArray[Any]) -> NDArray[np.float64]:
        """Those of our values that the fixture stores."""
        flat = np.asarray(ours, dtype=np.float64).reshape(-1)
        return flat[self.arrays[f"i/{key}"]] if f"i/{key}" in self.arrays.files else flat

    def error(self, key: str, ours: NDArray[Any], doubt: NDArray[Any] | None = None) -> float:
        """max|ours - stored| / max|stored| over the stored values of a result.

        Args:
            key: The result.
            ours: Our values.
            doubt: How far each of them may be off; see `undecided.py`.
        """
        picked = self.picked(key, ours)
        reference = np.asarray(self.arrays[f"r/{key}"], dtype=np.float64).reshape(-1)
        assert picked.shape == reference.shape, f"{key}: {picked.shape} against {reference.shape}"
        scale = float(np.max(np.abs(reference), initial=0.0)) or 1.0
        excess = np.abs(picked - reference)
        if doubt is not None:
            excess = excess - self.picked(key, doubt)
        return float(np.max(excess, initial=0.0)) / scale

    def norm_error(self, key: str, ours: NDArray[Any], doubt: NDArray[Any] | None = None) -> float:
        """Relative error of the L2 norm of the whole array, of which few values may be stored."""
        norm = self.meta["results"][key]["stats"][2]
        values = np.asarray(ours, dtype=np.float64).reshape(-1)
        allowed = 0.0
        if doubt is not None and norm:
            allowed = float((np.abs(values) * doubt.reshape(-1)).sum()) / norm**2
        return abs(float(np.linalg.norm(values)) - norm) / (norm or 1.0) - allowed

    def check(self, key: str, ours: NDArray[Any], doubt: NDArray[Any] | None = None) -> bool:
        """Assert one result; False where it is noise and was left out."""
        limit = self.tolerance(key)
        if limit is None:
            return False
        result = self.error(key, ours, doubt)
        assert result <= limit, f"{self.meta['case']} {key}: error {result:.2e} above {limit:.2e}"
        if f"i/{key}" in self.arrays.files:
            result = self.norm_error(key, ours, doubt)
            assert result <= limit, (
                f"{self.meta['case']} {key}: norm {result:.2e} above {limit:.2e}"
            )
        return True

    def check_all(
        self,
        ours: Mapping[str, NDArray[Any]],
        doubt: Callable[[], Mapping[str, NDArray[Any]]] = dict,
    ) -> set[str]:
        """Assert that every result of the case is there and within its tolerance.

        Args:
            ours: Our results.
            doubt: Tells how far some of them may be off, and is called if one is; see
                `undecided.py`.

        Returns:
            The results that are noise and were left out.
        """
        stored = set(self.meta["results"])
        assert set(ours) == stored, f"differ in {sorted(set(ours) ^ stored)}"
        return self.check_some(ours, doubt)

    def check_some(
        self,
        ours: Mapping[str, NDArray[Any]],
        doubt: Callable[[], Mapping[str, NDArray[Any]]] = dict,
    ) -> set[str]:
        """`check_all` of a part of the results."""
        failures: list[str] = []
        noise: set[str] = set()
        for key, values in ours.items():
            try:
                if not self.check(key, values):
                    noise.add(key)
            except AssertionError:
                try:
                    self.check(key, values, doubt().get(key))
                except AssertionError as error:
                    failures.append(str(error))
        assert not failures, "\n".join(failures)
        return noise
