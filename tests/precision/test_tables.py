"""Tables of ops: read from their files once."""

from jumar.precision import oplist, optypes, overloads
from jumar.precision.recording import cann as cann_types


def test_tables_are_read_once() -> None:
    assert optypes.op_groups() is optypes.op_groups()
    assert optypes.groups_by_type() is optypes.groups_by_type()
    assert oplist.listed_ops() is oplist.listed_ops()
    for cached in (optypes._types_by_op, overloads.find_overload, cann_types.cann_type):
        assert cached.cache_info().maxsize is None
