"""Things that files register, by name."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from jumar.profiling.registry import Registry


@dataclass(frozen=True)
class Thing:
    name: str
    order: int


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package whose files register on import, and a list of those that were imported."""
    name = "registering_things"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("LOADED = []\nREGISTRY = None\n")
    for place, file in enumerate(("b", "a", "c")):
        (folder / f"{file}.py").write_text(
            f"import {name}, tests.profiling.test_registry as t\n{name}.LOADED.append('{file}')\n"
            f"{name}.REGISTRY.add(t.Thing('{file}', {place % 2}))\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    yield name  # pyright: ignore[reportReturnType]
    for module in [one for one in sys.modules if one.startswith(name)]:
        del sys.modules[module]


def test_registry_imports_on_first_access_and_sorts_by_position(
    package: str,
) -> None:
    things: Registry[Thing] = Registry(package)
    module = __import__(package)
    module.REGISTRY = things
    assert module.LOADED == []
    things.add(Thing("z", -1))
    assert list(things) == ["z", "b", "c", "a"]
    assert sorted(module.LOADED) == ["a", "b", "c"]
    assert things["a"] == Thing("a", 1)
    assert len(things) == 4
    # Imported once: what is taken away is not there again.
    del things.registered["a"]
    assert len(things) == 3
    assert "a" not in things
    with pytest.raises(ValueError, match=r"^'b' is registered twice$"):
        things.add(Thing("b", 7))
    assert things["b"].order == 0
