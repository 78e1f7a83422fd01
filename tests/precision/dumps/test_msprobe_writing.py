"""What is written in msprobe's form is read back as it was."""

import json
from dataclasses import replace
from pathlib import Path

from jumar.precision.dumps.dump import Call, Dump, Statistics, Value
from jumar.precision.dumps.msprobe_writing import write_msprobe
from jumar.precision.dumps.opening import open_dump, open_dumps


def plain(dump: Dump) -> list[str]:
    """The calls without the names of tensor files, NaN equal to itself."""
    return [
        repr(
            replace(
                call,
                arguments=dict(call.arguments),
                values=tuple(replace(value, tensor=None) for value in call.values),
            )
        )
        for call in dump.calls
    ]


def test_every_sample_comes_back_as_it_was(shared: Path, tmp_path: Path) -> None:
    dumps = [d for d in open_dumps(shared / "data" / "dumps") if d.tool == "msprobe"]
    assert len(dumps) == 25
    for number, dump in enumerate(dumps):
        written = write_msprobe(tmp_path / str(number), dump)
        assert plain(open_dump(written)) == plain(dump), dump.where


def test_a_dump_of_a_header_alone_says_so(tmp_path: Path) -> None:
    for entries in ({}, None):
        content = {"task": "statistics", "level": "L1", "data": entries}
        (tmp_path / "dump.json").write_text(json.dumps(content))
        dump = open_dump(tmp_path)
        assert (list(dump.calls), "It holds a header and no calls." in dump.notices) == ([], True)


def test_ops_of_ours_and_their_layers_come_back(tmp_path: Path) -> None:
    def value(role: str, name: str) -> Value:
        numbers = Statistics(count=6, min=-1.0, max=2.0, mean=0.5, l2=3.0)
        return Value(
            role=role,  # type: ignore[arg-type]
            name=name,
            dtype="bfloat16",
            shape=(2, 3),
            statistics=numbers,
        )

    op = Call(
        kind="op",
        op="aten.cat.default",
        layer="net.0",
        number=0,
        phase="forward",
        values=(value("input", "0.0"), value("input", "0.1"), value("output", "0")),
        arguments={"1": "-1"},
    )
    layer = Call(
        kind="module",
        op="Linear",
        layer="net.0",
        number=0,
        phase="forward",
        values=(value("input", "0"), value("output", "0"), value("parameter", "weight")),
    )
    dump = Dump(where=tmp_path, tool="jumar", step=3, rank=1, calls=[op, layer])
    folder = write_msprobe(tmp_path / "out", dump)
    assert folder == tmp_path / "out" / "step3" / "rank1"
    assert plain(open_dump(folder)) == plain(dump)
    construct = json.loads((folder / "construct.json").read_text())
    assert construct["Aten.cat.default.0.forward"] == "Module.net.0.Linear.forward.0"
