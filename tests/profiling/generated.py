"""Profiles with known answers: a run of equal steps, and faults put into it one by one.

Every time is a whole number of nanoseconds that follows from the arguments, so tests state exact
answers. One step computes 10 ms on the device: five matrix products of 1.6 ms and four vector ops
of 0.5 ms, without gaps.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from jumar.profiling.profile import (
    COLLECTIVES_SCHEMA,
    HOST_SCHEMA,
    LINKS_SCHEMA,
    OPS_SCHEMA,
    STEPS_SCHEMA,
    DeviceKind,
    Profile,
)

MATMUL_NS = 1_600_000
VECTOR_NS = 500_000
BUSY_NS = 5 * MATMUL_NS + 4 * VECTOR_NS
EPOCH_NS = 1_736_408_883_704_643_212
GENERATED = "generated"


@dataclass(frozen=True, kw_only=True)
class Training:
    """What is generated.

    Args:
        steps: Steps of each rank.
        ranks: Ranks, each with one all-reduce a step when there are more than one.
        casts: Casts of 0.2 ms in each step (a cast storm).
        format_changes: TransData of 0.3 ms in each step.
        loader_ns: How long the loader holds up each step.
        straggler: The rank that computes `late_ns` longer; the others wait for it.
        late_ns: By how much.
        ai_cpu_ns: Length of one AI CPU op of doubles in each step.
        clock_drop_step: From this step on the device runs at half its clock.
        item_ns: How long the host blocks in `aten::item` at the end of each step, the device idle.
        warm_up_ns: What the first step takes longer, idle.
        noise_ns: Each op is longer by a random number below this.
        seed: Of the noise.
        kind: Where the ops ran.
    """

    steps: int = 5
    ranks: int = 1
    casts: int = 0
    format_changes: int = 0
    loader_ns: int = 0
    straggler: int | None = None
    late_ns: int = 0
    ai_cpu_ns: int = 0
    clock_drop_step: int | None = None
    item_ns: int = 0
    warm_up_ns: int = 0
    noise_ns: int = 0
    seed: int = 0
    kind: DeviceKind = "npu"


ALL_REDUCE_NS = 1_000_000


def frame(rows: Sequence[dict[str, Any]], schema: Any) -> pl.DataFrame:
    """A table in the contract's format; missing fields of a row are null."""
    return pl.DataFrame(
        {name: [row.get(name) for row in rows] for name in schema}, schema=dict(schema)
    )


_TABLES = {
    "steps": STEPS_SCHEMA,
    "host": HOST_SCHEMA,
    "collectives": COLLECTIVES_SCHEMA,
    "links": LINKS_SCHEMA,
}


def profile_of(
    ops: Sequence[dict[str, Any]] = (), *, kind: DeviceKind = "npu", **more: Any
) -> Profile:
    """A profile of rows; `steps`, `host`, `collectives` and `links` are rows, too.

    A column of the ops that is not in the contract, as those of counters, is taken as it is.
    """
    further = dict.fromkeys(name for row in ops for name in row if name not in OPS_SCHEMA)
    table = frame(ops, OPS_SCHEMA).with_columns(
        pl.Series(name, [row.get(name) for row in ops]) for name in further
    )
    tables = {name: frame(more.pop(name), _TABLES[name]) for name in _TABLES if name in more}
    return Profile(source="made", producer="test", kind=kind, ops=table, **tables, **more)


class _Rank:
    """One rank's clock and the rows written on the way."""

    def __init__(self, training: Training, rank: int) -> None:
        self.training = training
        self.rank = rank
        self.now = EPOCH_NS
        self.ops: list[dict[str, Any]] = []
        self.host: list[dict[str, Any]] = []
        self.steps: list[dict[str, Any]] = []
        self.collectives: list[dict[str, Any]] = []
        self.random = random.Random(training.seed * 1009 + rank)

    def op(self, step: int, kind: str, duration: int, **more: Any) -> None:
        half = self.training.clock_drop_step
        if half is not None and step >= half and more.get("core") != "COMMUNICATION":
            duration *= 2
        if self.training.noise_ns:
            duration += self.random.randrange(self.training.noise_ns)
        row = {
            "rank": self.rank,
            "step": step,
            "device": self.rank,
            "stream": "2",
            "task": len(self.ops),
            "name": f"{kind}_{len(self.ops)}",
            "type": kind,
            "start_ns": self.now,
            "duration_ns": duration,
            "wait_ns": 0,
            "block_num": 20,
        }
        self.ops.append(row | more)
        self.now += duration

    def call(self, layer: str, name: str, start: int, duration: int) -> None:
        self.host.append(
            {
                "rank": self.rank,
                "thread": "1",
                "layer": layer,
                "name": name,
                "start_ns": start,
                "duration_ns": duration,
            }
        )


def _shapes(inputs: str, types: str, outputs: str, output_types: str) -> dict[str, str]:
    count = inputs.count(";") + 1
    return {
        "input_shapes": inputs,
        "input_types": types,
        "input_formats": ";".join(["ND"] * count),
        "output_shapes": outputs,
        "output_types": output_types,
        "output_formats": "ND",
    }


def _step(rank: _Rank, step: int) -> None:
    told = rank.training
    begin = rank.now
    if told.loader_ns:
        rank.call("op", "enumerate(DataLoader)#_Single.__next__", rank.now, told.loader_ns)
        rank.now += told.loader_ns
    if step == 0:
        rank.now += told.warm_up_ns
    matrix = _shapes("2048,2048;2048,2048", "FLOAT;FLOAT", "2048,2048", "FLOAT")
    vector = _shapes("2048,2048;2048,2048", "FLOAT;FLOAT", "2048,2048", "FLOAT")
    for layer in range(5):
        module = f"layers.{layer}"
        rank.op(step, "MatMulV2", MATMUL_NS, core="AI_CORE", module=module, **matrix)
        if layer < 4:
            rank.op(step, "Add", VECTOR_NS, core="AI_VECTOR_CORE", module=module, **vector)
    for _ in range(told.casts):
        cast = _shapes("2048,2048", "FLOAT", "2048,2048", "FLOAT16")
        rank.op(step, "Cast", 200_000, core="AI_VECTOR_CORE", **cast)
    for _ in range(told.format_changes):
        change = _shapes("32,3,224,224", "FLOAT", "32,1,224,224,8", "FLOAT")
        rank.op(step, "TransData", 300_000, core="AI_VECTOR_CORE", **change)
    if told.ai_cpu_ns:
        double = _shapes("64,1000", "DOUBLE", "64,5", "DOUBLE")
        rank.op(step, "TopK", told.ai_cpu_ns, core="AI_CPU", **double)
    if told.straggler == rank.rank:
        rank.op(step, "Pad", told.late_ns, core="AI_VECTOR_CORE", **vector)
    if told.ranks > 1:
        waits = told.late_ns if told.straggler not in (None, rank.rank) else 0
        row = {
            "rank": rank.rank,
            "step": step,
            "name": f"hcom_allReduce__{step}",
            "group": "world",
            "start_ns": rank.now,
            "elapse_ns": ALL_REDUCE_NS + waits,
            "transit_ns": ALL_REDUCE_NS,
            "wait_ns": waits,
            "synchronization_ns": waits,
            "idle_ns": 0,
        }
        rank.collectives.append(row)
        name, length = row["name"], row["elapse_ns"]
        rank.op(step, "hcom_allReduce_", length, core="COMMUNICATION", name=name, block_num=None)
    if told.item_ns:
        rank.call("op", "aten::item", rank.now, told.item_ns)
        rank.now += told.item_ns
    rank.steps.append({"rank": rank.rank, "step": step, "start_ns": begin, "end_ns": rank.now})


def training(told: Training | None = None, **more: Any) -> Profile:
    """A profile as described."""
    told = replace(told or Training(), **more)
    ranks = [_Rank(told, rank) for rank in range(told.ranks)]
    for rank in ranks:
        for step in range(told.steps):
            _step(rank, step)
    drop = told.clock_drop_step
    statistics: dict[str, pl.DataFrame] = {}
    if drop is not None:
        starts = [row["start_ns"] for row in ranks[0].steps]
        statistics["frequency"] = pl.DataFrame(
            {
                "rank": pl.Series([0] * len(starts), dtype=pl.Int32),
                "time_ns": starts,
                "mhz": [800.0 if step >= drop else 1600.0 for step in range(told.steps)],
            }
        )
    return Profile(
        source=GENERATED,
        producer="jumar",
        kind=told.kind,
        ops=frame([row for rank in ranks for row in rank.ops], OPS_SCHEMA),
        steps=frame([row for rank in ranks for row in rank.steps], STEPS_SCHEMA),
        host=frame([row for rank in ranks for row in rank.host], HOST_SCHEMA),
        collectives=frame([row for rank in ranks for row in rank.collectives], COLLECTIVES_SCHEMA),
        statistics=statistics,
    )
