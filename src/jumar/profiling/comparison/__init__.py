"""Compares profiles: what changes the step time, and which ops to move between precision lists.

`compare` splits the difference into parts that add up to it exactly. `propose` derives edits of
`modify_mixlist` from a pair of precision modes.
"""

from jumar.profiling.comparison.chains import cancelling_chains, chains_per_step
from jumar.profiling.comparison.mixlist import Edit, as_mixlist, propose
from jumar.profiling.comparison.own_times import PreparedProfile, prepare
from jumar.profiling.comparison.parts import (
    PART_TITLES,
    ChangePart,
    Comparison,
    compare,
    compare_prepared,
)
from jumar.profiling.comparison.tables import edit_table, tables

__all__ = [
    "PART_TITLES",
    "ChangePart",
    "Comparison",
    "Edit",
    "PreparedProfile",
    "as_mixlist",
    "cancelling_chains",
    "chains_per_step",
    "compare",
    "compare_prepared",
    "edit_table",
    "prepare",
    "propose",
    "tables",
]
