"""The manifest of a run in a store: which objects are its files, with their hashes.

It is written after the objects that it names, so its presence means that they are complete. An
object that a manifest names is never overwritten: a file that changed is written under a key with
its hash, and the next manifest names that one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, cast

from jumar.ground.errors import UserError
from jumar.ground.json_text import parse_json
from jumar.stores.client import Client, StoredObject
from jumar.stores.location import Location

MANIFEST = "manifest.json"
_KIND = "jumar run"
_FORMAT = 1


class NoManifestOfRun(UserError):
    """An object with the manifest's name is not a manifest."""


@dataclass(frozen=True, kw_only=True)
class KeptFile:
    """A file of a run in the store.

    Attributes:
        key: Its object, relative to the run.
        size: Its bytes.
        sha256: The hash of its content, in hex.
    """

    key: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The files of a run, by their paths in its directory, and the manifest's own ETag."""

    files: Mapping[str, KeptFile] = field(default_factory=dict[str, KeptFile])
    e_tag: str | None = None

    def to_json(self, writer: str) -> bytes:
        """The content of `manifest.json`.

        Args:
            writer: Who writes it, so that two writers never write the same bytes.
        """
        content = {
            "kind": _KIND,
            "format": _FORMAT,
            "writer": writer,
            "files": {name: vars(file) for name, file in sorted(self.files.items())},
        }
        return (json.dumps(content, indent=1) + "\n").encode()

    def objects(self, run: Location) -> dict[str, StoredObject]:
        """The objects by the paths of their files; their ETags are unknown."""
        return {
            name: StoredObject(location=run.below(file.key), size=file.size, e_tag="")
            for name, file in self.files.items()
        }


def read_manifest(client: Client, run: Location) -> Manifest:
    """The manifest of a run in a store.

    Raises:
        Absent: There is none.
        NoManifestOfRun: It is not a manifest.
        UserError: It is damaged.
    """
    location = run.below(MANIFEST)
    content, e_tag = client.read_small(location)
    try:
        parsed: Any = parse_json(content)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict) or cast("dict[str, Any]", parsed).get("kind") != _KIND:
        raise NoManifestOfRun("is not a manifest of a run", where=str(location))
    try:
        if parsed["format"] > _FORMAT:
            raise UserError(
                f"has format {parsed['format']}, but this version of jumar reads up to {_FORMAT}",
                where=str(location),
                todo="Use the version that wrote it, or a newer one.",
            )
        files = {
            str(name): KeptFile(
                key=str(file["key"]), size=int(file["size"]), sha256=str(file["sha256"])
            )
            for name, file in parsed["files"].items()
        }
        for name in [*files, *(file.key for file in files.values())]:
            if not is_safe(name):
                raise ValueError(f"it names {name!r}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"is not a manifest of a run: {error}", where=str(location)) from None
    return Manifest(files=files, e_tag=e_tag)


def is_safe(name: str) -> bool:
    """Whether a name from a store stays within its destination folder."""
    parts = name.split("/")
    return (
        bool(name)
        and "\0" not in name
        and not PurePosixPath(name).is_absolute()
        and all(part not in ("", ".", "..") for part in parts)
        and all(len(part.encode(errors="surrogateescape")) <= 255 for part in parts)
    )
