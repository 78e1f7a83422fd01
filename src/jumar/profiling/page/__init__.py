"""The HTML page of a profile: one file that needs no network."""

from jumar.profiling.page.rendering import page

__all__ = ["page"]
