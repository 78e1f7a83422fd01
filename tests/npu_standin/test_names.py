"""Every name of torch_npu that jumar uses, against the names of the real package.

The table is read from a wheel by extract_names.py. devices/ calls torch_npu on variables named
`backend`, `npu`, `profiler`, `side` and `current` (streams) only; the tests hold it to that.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jumar.devices import accelerator, npu
from jumar.environment import OLDEST_TORCH
from tests.npu_standin import SITE
from tests.npu_standin.extract_names import TABLE

ROOTS = {
    "backend": ("npu",),
    "npu": ("npu",),
    "side": ("npu", "Stream"),
    "current": ("npu", "Stream"),
    "profiler": ("profiler",),
}
"""Names of variables in devices/, and where in torch_npu their value lives."""
GIVERS = {"_backend", "get_device_module", "import_module", "load"}
"""What returns a back end's module."""

SOURCE = ast.parse("".join(Path(str(each.__file__)).read_text() for each in (accelerator, npu)))
RELEASES: dict[str, dict[str, dict[str, list[str]]]] = json.loads(TABLE.read_text())


def chain(node: ast.expr) -> tuple[str, ...]:
    """`a.b.c` as a tuple, or () for anything else."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        before = chain(node.value)
        return (*before, node.attr) if before else ()
    return ()


def used_names() -> set[tuple[str, ...]]:
    """Every attribute chain in devices/ that starts at torch_npu.npu or torch_npu.profiler."""
    result: set[tuple[str, ...]] = set()
    inner = {id(node.value) for node in ast.walk(SOURCE) if isinstance(node, ast.Attribute)}
    for node in ast.walk(SOURCE):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            root, *rest = chain(node) or ("",)
            if root in ROOTS:
                result.add((*ROOTS[root], *rest))
    return result


def in_the_table(name: tuple[str, ...], release: str) -> bool:
    names = RELEASES[release][f"torch_npu.{name[0]}"]
    return name[1] in names and (len(name) == 2 or name[2] in names[name[1]])


def test_names_that_devices_use_are_found() -> None:
    called = {".".join(name) for name in used_names()}
    assert {"npu.matmul.allow_hf32", "npu.conv.allow_hf32", "npu.Stream.wait_stream"} <= called
    assert {"npu.set_device", "npu.max_memory_allocated", "npu.synchronize"} <= called
    assert {"profiler.profile", "profiler.ProfilerLevel.Level1"} <= called


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", sorted(used_names()), ids=".".join)
def test_real_package_has_all_names_devices_use(name: tuple[str, ...], release: str) -> None:
    assert in_the_table(name, release)


@pytest.mark.parametrize(
    "name",
    [
        ("npu", "memory_peak"),
        ("npu", "matmul", "allow_tf32"),
        ("npu", "Stream", "wait"),
        ("npu", "cuda"),
        ("profiler", "ProfilerLevel", "Level7"),
    ],
)
def test_name_missing_from_the_real_package_is_detected(name: tuple[str, ...]) -> None:
    assert not any(in_the_table(name, release) for release in RELEASES)


def test_devices_call_a_back_end_only_by_the_agreed_names() -> None:
    """Or the test above would not see the call."""
    allowed: set[int] = set()
    for node in ast.walk(SOURCE):
        if isinstance(node, ast.Assign):
            if all(isinstance(target, ast.Name) and target.id in ROOTS for target in node.targets):
                allowed |= {id(inner) for inner in ast.walk(node.value)}
        elif isinstance(node, ast.Return | ast.Expr) and isinstance(node.value, ast.Call):
            allowed.add(id(node.value))
    stray = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(SOURCE)
        if isinstance(node, ast.Call)
        and (chain(node.func) or ("",))[-1] in GIVERS
        and id(node) not in allowed
    ]
    assert not stray


def _offered(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


@pytest.mark.parametrize("release", RELEASES)
def test_stand_in_has_only_names_of_the_real_package(release: str) -> None:
    # Private names are what torch itself asks of a device module, and the stand-in's own.
    module = SITE / "torch_npu" / "npu" / "__init__.py"
    public = {name for name in _offered(module) if not name.startswith("_")}
    assert public
    assert public <= set(RELEASES[release]["torch_npu.npu"])
    assert {"npu", "distributed", "__version__"} <= set(RELEASES[release]["torch_npu"])
    assert {"_lazy_init", "_is_in_bad_fork"} <= set(RELEASES[release]["torch_npu.npu"])


def test_table_has_the_oldest_and_the_tested_release() -> None:
    oldest = ".".join(map(str, OLDEST_TORCH))
    assert [release.rpartition(".")[0] for release in RELEASES] == [oldest, "2.13"]
