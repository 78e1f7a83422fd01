"""Views and findings by name: everything that the files of some packages register."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, Protocol, TypeVar


class Registered(Protocol):
    """Something with a name and a position among its kind."""

    @property
    def name(self) -> str: ...

    @property
    def place(self) -> int: ...


_Item = TypeVar("_Item", bound=Registered)


class Registry(Mapping[str, _Item], Generic[_Item]):
    """The registered items, by name, in the order of `place`.

    The packages are imported at the first look, so a new entry only needs a file in one of
    them.

    Args:
        packages: Where files register.
    """

    def __init__(self, *packages: str) -> None:
        self._packages = packages
        self._imported = False
        self.registered: dict[str, _Item] = {}

    def add(self, item: _Item) -> None:
        """Register; a name that is taken is a programming error."""
        if item.name in self.registered:
            raise ValueError(f"{item.name!r} is registered twice")
        self.registered[item.name] = item

    def _known(self) -> dict[str, _Item]:
        if not self._imported:
            self._imported = True
            for package in self._packages:
                for module in iter_modules(import_module(package).__path__, f"{package}."):
                    import_module(module.name)
        return self.registered

    def __getitem__(self, name: str) -> _Item:
        return self._known()[name]

    def __iter__(self) -> Iterator[str]:
        known = self._known()
        return iter(sorted(known, key=lambda name: (known[name].place, name)))

    def __len__(self) -> int:
        return len(self._known())
