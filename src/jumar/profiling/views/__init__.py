"""Views: functions from a profile to a table, each added to `VIEWS` in its own file.

A view raises `Impossible` if the profile lacks what it needs.
"""

from jumar.profiling.views.view import (
    VIEWS,
    Answers,
    Impossible,
    Options,
    View,
    answers,
    default_views,
    find_view,
)

__all__ = [
    "VIEWS",
    "Answers",
    "Impossible",
    "Options",
    "View",
    "answers",
    "default_views",
    "find_view",
]
