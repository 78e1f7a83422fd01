"""Registries of views and findings, filled when the modules of some packages are imported."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, Protocol, TypeVar


class Registered(Protocol):
    """An item with a name and a position in its registry."""

    @property
    def name(self) -> str: ...

    @property
    def order(self) -> int: ...


_Item = TypeVar("_Item", bound=Registered)


class Registry(Mapping[str, _Item], Generic[_Item]):
    """The registered items by name, sorted by `order`.

    All modules of the packages are imported on first access, so a new item only needs a module in
    one of them.

    Args:
        packages: The packages whose modules register items.
    """

    def __init__(self, *packages: str) -> None:
        self._packages = packages
        self._imported = False
        self.registered: dict[str, _Item] = {}

    def add(self, *items: _Item) -> None:
        """Register items under new names."""
        for item in items:
            if item.name in self.registered:
                raise ValueError(f"{item.name!r} is registered twice")
            self.registered[item.name] = item

    def _items(self) -> dict[str, _Item]:
        if not self._imported:
            self._imported = True
            for package in self._packages:
                for module in iter_modules(import_module(package).__path__, f"{package}."):
                    import_module(module.name)
        return self.registered

    def __getitem__(self, name: str) -> _Item:
        return self._items()[name]

    def __iter__(self) -> Iterator[str]:
        items = self._items()
        return iter(sorted(items, key=lambda name: (items[name].order, name)))

    def __len__(self) -> int:
        return len(self._items())
