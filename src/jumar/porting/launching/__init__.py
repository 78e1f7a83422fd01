"""Files that a port adds so that its scripts can be started: on several devices, on ModelArts."""

from jumar.porting.launching.added import added_files

__all__ = ["added_files"]
