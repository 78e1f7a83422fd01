"""A process made to forget what it knows of stores, and pointed at one."""

from pathlib import Path

import pytest

from tests.stores.servers import Server


def point_at(server: Server, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Reach this store from here on, with a cache in that folder."""
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("JUMAR_CACHE", str(folder / "cache"))
    forget()


def forget() -> None:
    """Forget what is kept for the rest of a process, as another process would not know it."""
    from jumar.data.images.stored_images import stored_shards
    from jumar.stores import fetching
    from jumar.stores.client import _client

    for known in (stored_shards, _client, fetching._fetched):
        known.cache_clear()
    for folder in fetching._pinned:
        folder.pin.close()
    fetching._pinned.clear()
