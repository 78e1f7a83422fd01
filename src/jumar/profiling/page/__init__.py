"""The page of a profile: one HTML file that needs no network."""

from jumar.profiling.page.rendering import page

__all__ = ["page"]
