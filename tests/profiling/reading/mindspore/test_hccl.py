"""MindSpore's costs of collectives."""

from pathlib import Path

import pytest

from jumar.profiling.profile import COLLECTIVES_SCHEMA, LINKS_SCHEMA
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.mindspore.hccl import read_hccl


def read(folder: Path, *costs: str) -> FileContent:
    rows = "".join(
        f'{number},1,1,"{cost}"\n'.replace("'", '""') for number, cost in enumerate(costs, 1)
    )
    path = folder / "x.csv"
    path.write_text(f"step_num,communication_cost,wait_cost,communication_operator_cost\n{rows}")
    return read_hccl(path, "shown.csv", "mindspore_hccl")


def test_collectives_and_links_become_rows(tmp_path: Path) -> None:
    links = (
        "{'1-0': {'SDMA': [0.5, 1.5, 9], 'RDMA': [0, 2], 'x': [1]}, '999999-2': {'a': ['y', 3]}}"
    )
    content = read(tmp_path, f"{{'a': [3, 0.5, 0.25, {links}], 'b': [1, 2, 3, 4]}}", "{}")
    assert (content.file, content.kind, content.producer) == (
        "shown.csv",
        "mindspore_hccl",
        "mindspore",
    )
    assert content.collectives is not None
    assert content.collectives.schema == dict(COLLECTIVES_SCHEMA)
    told = ("step", "name", "elapse_ns", "transit_ns", "wait_ns")
    assert content.collectives.select(told).rows() == [
        (1, "a", 750_000, 500_000, 250_000),
        (1, "b", 5_000_000, 2_000_000, 3_000_000),
    ]
    assert content.links is not None
    assert content.links.schema == dict(LINKS_SCHEMA)
    told = ("step", "name", "transport", "source", "destination", "size_bytes", "transit_ns")
    assert content.links.select(*told, "bandwidth_gb_s").rows() == [
        (1, "a", "SDMA", 1, 0, 1500, 500_000, 0.003),
        (1, "a", "RDMA", 1, 0, 2000, 0, None),
        (1, "a", "a", 999999, 2, 3000, None, None),
    ]
    assert content.missing == ()


def test_steps_that_are_not_valid_integers_are_omitted(tmp_path: Path) -> None:
    cost = '"{""a"": [3, 0.5, 0.25, {}]}"'
    rows = "".join(f"{step},1,1,{cost}\n" for step in ("1", "-", "1e30", "x", "2"))
    path = tmp_path / "x.csv"
    path.write_text(f"step_num,communication_cost,wait_cost,communication_operator_cost\n{rows}")
    content = read_hccl(path, "shown.csv", "mindspore_hccl")
    assert content.collectives is not None
    assert content.collectives["step"].to_list() == [1, 2]


@pytest.mark.parametrize(
    "links",
    [
        *("5", "{'1-0': 3}", "{'1000000-0': {'a': [1, 1]}}", "{'0-1000000': {'a': [1, 1]}}"),
        *("{'x-0': {'a': [1, 1]}}", "{'0-': {'a': [1, 1]}}", "{'0-1': {'a': {}}}"),
        *("{'0': {'a': [1, 1]}}", "{'0-٣': {'a': [1, 1]}}"),
    ],
)
def test_implausible_links_are_omitted(tmp_path: Path, links: str) -> None:
    content = read(tmp_path, f"{{'a': [1, 2, 3, {links}]}}")
    assert content.links is not None
    assert content.links.is_empty()
    assert content.collectives is not None
    assert content.collectives.height == 1


def test_implausible_costs_are_named_by_line(tmp_path: Path) -> None:
    content = read(tmp_path, "{", "{'a': [1, 2, 3]}", "{'b': ['1', 'x', 2, {}]}", "[1]", "{'c': 7}")
    assert content.collectives is not None
    assert content.collectives.is_empty()
    assert [gap.what for gap in content.missing] == [
        "4 numbers cannot be read: line 2, column 'communication_operator_cost': '{'; "
        "line 3, column 'communication_operator_cost': '[1, 2, 3]'; "
        "line 4, column 'communication_operator_cost': \"['1', 'x', 2, {}]\"; and 1 more"
    ]
    path = tmp_path / "y.csv"
    path.write_text("step_num,other\n1,2\n")
    bare = read_hccl(path, "shown.csv", "k")
    assert bare.collectives is not None
    assert bare.collectives.is_empty()
    average = tmp_path / "z.csv"
    average.write_text('step_num,communication_operator_cost\n-,"{""a"": [1, 2, 3, 4]}"\n')
    rows = read_hccl(average, "shown.csv", "k").collectives
    assert rows is not None
    assert rows.is_empty()
