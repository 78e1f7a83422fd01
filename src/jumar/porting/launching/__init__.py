"""Files that a port adds so that its scripts can be started: on several devices, on ModelArts."""

from jumar.porting.launching.added import ADDED_NAMES, added_files

__all__ = ["ADDED_NAMES", "added_files"]
