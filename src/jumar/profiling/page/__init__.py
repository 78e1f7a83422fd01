"""The page of a profile: one HTML file that needs no network, below 10 MB for a million ops."""

from jumar.profiling.page.rendering import page

__all__ = ["page"]
