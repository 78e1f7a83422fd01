"""Views: each a function from a profile to a table, in its own file, added to `VIEWS`.

A view raises `Impossible` where the profile lacks what it needs.
"""

from jumar.profiling.views.view import (
    VIEWS,
    Answers,
    Impossible,
    Options,
    View,
    answers,
    find_view,
)

__all__ = ["VIEWS", "Answers", "Impossible", "Options", "View", "answers", "find_view"]
