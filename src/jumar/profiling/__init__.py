"""Profiles of any device and Ascend release: reading, views, advice, comparison, and a page.

Every profile is read into a `Profile` (`profile.py`): the op table and further tables, with times
as integer nanoseconds. All other modules work on a `Profile`.

    import jumar.profiling

    profile = jumar.profiling.read("runs/alexnet-1/profile")
    profile.ops.group_by("type").agg(pl.col("duration_ns").sum())
    profile.ops.to_pandas()  # needs pandas and pyarrow
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumar.profiling.profile import Missing, Profile
    from jumar.profiling.reading import read

__all__ = ["Missing", "Profile", "read"]


def __getattr__(name: str) -> Any:
    """Import on first use: `jumar --help` should not wait for polars."""
    if name == "read":
        from jumar.profiling.reading import read

        return read
    if name in ("Missing", "Profile"):
        from jumar.profiling import profile

        return getattr(profile, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
