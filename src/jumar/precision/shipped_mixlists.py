"""The op lists that are shipped with the package for recipes, and named without a path.

A list belongs to its recipe, regardless of the user's mode; modes without op lists ignore it.
"""

from pathlib import Path

_FOLDER = Path(__file__).with_name("mixlists")


def shipped_mixlists() -> list[str]:
    """Return the names of the shipped op lists."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def find_mixlist(name: str | Path) -> Path:
    """Return the path of a shipped op list if it has that name, otherwise the name as a path.

    To use a file of the same name in the current directory, write `./` before it.
    """
    if is_shipped(str(name)):
        return _FOLDER / f"{name}.json"
    return Path(name)


def is_shipped(name: str) -> bool:
    """Whether a value of `modify_mixlist` is the name of a shipped op list."""
    return name in shipped_mixlists()
