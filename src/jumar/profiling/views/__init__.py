"""Views: each a function from a profile to a table, in its own file.

`VIEWS` has them all by name; a view raises `Impossible` where the profile lacks what it needs.
"""

from jumar.profiling.views.registry import VIEWS, find_view
from jumar.profiling.views.view import Impossible, Options, View

__all__ = ["VIEWS", "Impossible", "Options", "View", "find_view"]
