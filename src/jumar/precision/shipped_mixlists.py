"""The op lists that come with the package and are named without a path: those of recipes.

A list belongs to its recipe, whatever mode a user asks for; modes without op lists ignore it.
"""

from pathlib import Path

_FOLDER = Path(__file__).with_name("mixlists")


def shipped_mixlists() -> list[str]:
    """The names of the shipped op lists."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def find_mixlist(name: str | Path) -> Path:
    """The op list with that name: a shipped one, otherwise the file with that path.

    To use a file of the same name in the current directory, write `./` before it.
    """
    if is_shipped(str(name)):
        return _FOLDER / f"{name}.json"
    return Path(name)


def is_shipped(name: str) -> bool:
    """Whether a value of `modify_mixlist` is the name of a shipped op list."""
    return name in shipped_mixlists()
