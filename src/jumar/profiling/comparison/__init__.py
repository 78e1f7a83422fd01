"""Comparing profiles: where the change in step time comes from, and which casts to remove.

`compare` splits the difference into parts that add up to it exactly; `propose` turns a pair of
precision modes into edits of `modify_mixlist`.
"""

from jumar.profiling.comparison.chains import cancelling_chains, chains_a_step
from jumar.profiling.comparison.mixlist import Edit, as_mixlist, propose
from jumar.profiling.comparison.own_times import Side, side_of
from jumar.profiling.comparison.parts import TITLES, Comparison, Share, compare, compare_sides
from jumar.profiling.comparison.tables import edit_table, tables

__all__ = [
    "TITLES",
    "Comparison",
    "Edit",
    "Share",
    "Side",
    "as_mixlist",
    "cancelling_chains",
    "chains_a_step",
    "compare",
    "compare_sides",
    "edit_table",
    "propose",
    "side_of",
    "tables",
]
