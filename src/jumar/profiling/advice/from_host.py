"""Findings about the host: waiting for data, calls that block, launching too slowly."""

from collections.abc import Iterator

import polars as pl

from jumar.ground.text import Text, counted
from jumar.profiling.advice.finding import FINDINGS, Blame, Case, Claim, Finding, ms
from jumar.profiling.views.host_calls import STEP_MARK
from jumar.profiling.views.intervals import difference, intersection, length, spans, union


def _claims(case: Case, kind: str) -> Iterator[Claim]:
    """The idle time explained by causes of one kind."""
    for blame in case.blames[0]:
        if blame.cause.kind == kind and (length(blame.free) or blame.beside_ns):
            yield _claim(case, blame)


def _claim(case: Case, blame: Blame) -> Claim:
    cause, steps = blame.cause, case.steps
    stood, free = ms(length(blame.host) / steps), ms(length(blame.free) / steps)
    evidence = [_gaps(case, blame.free) if cause.kind == "launching" else _calls(case, blame)]
    if blame.beside_ns and cause.kind != "launching":
        beside = ms(blame.beside_ns / steps)
        evidence.append(
            Text(
                en=f"{beside} of it overlaps uncovered communication and is counted there",
                zh=f"其中 {beside} 与未掩盖的通信重叠，已计入通信",
            )
        )
    return Claim(
        values={"stood": stood, "free": free, "call": cause.label},
        spans=blame.free,
        evidence=tuple(evidence),
        host_ns=length(blame.host) if cause.kind in ("blocking", "copy") else 0,
    )


def _calls(case: Case, blame: Blame) -> Text:
    """How often a cause was called, and how much of it the device was idle."""
    calls = blame.cause.steady_calls.get(case.rank, 0) / case.steps
    longest = ms(blame.cause.longest_ns.get(case.rank, 0))
    free = ms(length(blame.free) / case.steps)
    return Text(
        en=f"{counted(calls, 'call')} a step, the longest {longest}; the device is idle in "
        f"{free} of it",
        zh=f"每迭代 {calls:g} 次调用，最长 {longest}；其间设备空闲 {free}",
    )


def _gaps(case: Case, free: pl.DataFrame) -> Text:
    """Its share of each gap, which distinguishes a slow host from one long wait."""
    gap = union(case.free)["start_ns"].search_sorted(free["start_ns"], "right")
    size = (pl.col("end_ns") - pl.col("start_ns")).sum()
    parts = free.with_columns(gap.alias("gap")).group_by("gap").agg(size.alias("part"))["part"]
    count = parts.len() / case.steps
    half, longest = ms(float(str(parts.median() or 0))), ms(float(str(parts.max() or 0)))
    return Text(
        en=f"{counted(count, 'gap')} a step: half of them hold up to {half} of it, one {longest}",
        zh=f"每迭代 {count:g} 个间隙：各占其中的中位数 {half}，最多 {longest}",
    )


def data_stalls(case: Case) -> Iterator[Claim]:
    """Waiting for the next batch, by `Data Aug Bound` or by the loader's calls."""
    claimed = intersection(case.augmenting, case.free)
    if case.profile.kind != "cpu" and claimed.height:
        bound = ms(length(case.augmenting) / case.steps)
        yield Claim(
            values={"free": ms(length(claimed) / case.steps)},
            spans=claimed,
            evidence=(
                Text(
                    en=f"Data Aug Bound is {bound} a step",
                    zh=f"Data Aug Bound 为每迭代 {bound}",
                ),
            ),
        )
    yield from _claims(case, "data")


def blocking_calls(case: Case) -> Iterator[Claim]:
    """Calls in which the host waits for the device."""
    return _claims(case, "blocking")


def pageable_copies(case: Case) -> Iterator[Claim]:
    """Copies from and to memory that is not pinned."""
    return _claims(case, "copy")


def host_work(case: Case) -> Iterator[Claim]:
    """Calls that overlap idle time and neither wait nor launch."""
    return _claims(case, "covering")


def garbage_collection(case: Case) -> Iterator[Claim]:
    """Python's garbage collector."""
    return _claims(case, "collector")


def slow_launches(case: Case) -> Iterator[Claim]:
    """The device waits for ops to be launched."""
    return _claims(case, "launching")


def memory_copies(case: Case) -> Iterator[Claim]:
    """Memory copies that nothing else explains and no computing overlaps."""
    left = intersection(case.blames[1], case.copying)
    if length(left):
        whole = ms(length(intersection(case.copying, case.inside)) / case.steps)
        bare = ms(length(left) / case.steps)
        line = Text(
            en=f"{whole} of memory copies a step, of which {bare} with the device otherwise idle",
            zh=f"每迭代内存拷贝 {whole}，其中 {bare} 期间设备没有其他工作",
        )
        yield Claim(values={"bare": bare}, spans=left, evidence=(line,))


def unexplained(case: Case) -> Iterator[Claim]:
    """Free time that no cause explains."""
    left = difference(case.blames[1], case.copying)
    if length(left):
        yield Claim(
            values={"free": ms(length(left) / case.steps), "record": _not_recorded(case)},
            spans=left,
            evidence=tuple(_where(case, left)),
        )


def _where(case: Case, left: pl.DataFrame) -> Iterator[Text]:
    """What is known of free time that no cause explains."""
    waits = intersection(left, case.queued)
    if waits.height:
        kept = ms(length(waits) / case.steps)
        yield Text(
            en=f"in {kept} of it the next op had been launched long before: it waits on the "
            "device, for another stream or another program",
            zh=f"其中 {kept} 内下一个算子早已下发：它在设备上等待其他流或其他程序",
        )
        left = difference(left, waits)
    if length(left):
        yield _beside(case, left)


def _not_recorded(case: Case) -> Text:
    """What to record to know more, as far as this profile lacks it."""
    layers = set(case.profile.host.filter(pl.col("rank").fill_null(0) == case.rank)["layer"])
    if not layers - {"mark"}:
        device = "CUDA" if case.profile.kind == "cuda" else "NPU"
        return Text(
            en=f"Record the host, too (activities CPU and {device}, with_stack); else: ",
            zh=f"同时采集 host 侧数据（activities 含 CPU 和 {device}，with_stack）；否则：",
        )
    if "python" not in layers:
        return Text(
            en="Record Python's calls, too (with_stack); else: ",
            zh="同时采集 Python 调用（with_stack）；否则：",
        )
    return Text(en="", zh="")


def _beside(case: Case, left: pl.DataFrame) -> Text:
    """What the host did meanwhile, as far as it is recorded."""
    host = case.profile.host.filter(
        (pl.col("rank").fill_null(0) == case.rank) & ~pl.col("name").str.contains(STEP_MARK)
    )
    covered = length(intersection(union(spans(host)), left))
    if covered:
        lies = ms(covered / case.steps)
        return Text(
            en=f"calls on the host lie over {lies} of it, but each mostly over other times",
            zh=f"其中 {lies} 有 host 侧调用，但各调用的大部分时间在别处",
        )
    if host.is_empty():
        return Text(en="the profile holds no calls on the host", zh="性能数据中没有 host 侧调用")
    return Text(
        en="no call on the host is recorded at these times", zh="这些时段没有记录到 host 侧调用"
    )


_LAUNCH_LESS = Text(
    en="Launch fewer and larger ops: a larger batch, fused optimizers and losses, graph mode "
    "or torch.compile; on Ascend also set TASK_QUEUE_ENABLE=2 and bind processes to cores.",
    zh="减少下发次数、增大单个算子：加大 batch、使用融合优化器和融合损失函数、图模式或 "
    "torch.compile；在昇腾上还可设置 TASK_QUEUE_ENABLE=2 并为进程绑核。",
)

FINDINGS.add(
    Finding(
        name="data-stall",
        what=Text(
            en="Waiting for data: {free} a step with the device free",
            zh="等待数据：每迭代设备空闲 {free}",
        ),
        change=Text(
            en="Prepare batches in more processes, ahead of the step, or cheaper: smaller pictures "
            "on the disk, decoding and augmentation on the device.",
            zh="用更多进程提前准备数据，或降低其开销：在磁盘上存放更小的图片，在设备上解码和做数据增强。",
        ),
        search=data_stalls,
        place=20,
        setting="data.workers",
        view="data",
        certain=True,
    )
)
FINDINGS.add(
    Finding(
        name="blocking-call",
        what=Text(
            en="The host spends {stood} a step in {call}", zh="host 每迭代在 {call} 中阻塞 {stood}"
        ),
        change=Text(
            en="Do not read values from the device in every step: keep losses and counts as "
            "tensors and read them where a log line is written; use masks instead of ops whose "
            "output's size depends on values.",
            zh="不要每个迭代都从设备读取数值：损失和计数保留为张量，写日志时再读取；用掩码代替输出大小"
            "取决于数值的算子。",
        ),
        search=blocking_calls,
        place=21,
        setting="training.log_every",
        view="host",
    )
)
FINDINGS.add(
    Finding(
        name="pageable-copy",
        what=Text(
            en="The host is blocked {stood} a step in {call}",
            zh="host 每迭代在{call}中阻塞 {stood}",
        ),
        change=Text(
            en="Pin the memory and do not wait for the copy: DataLoader(pin_memory=True) and "
            ".to(device, non_blocking=True); make small tensors on the device, not from lists.",
            zh="锁定内存且不等待拷贝：DataLoader(pin_memory=True) 和 "
            ".to(device, non_blocking=True)；小张量直接在设备上创建，不要由列表生成。",
        ),
        search=pageable_copies,
        place=21,
        view="host",
    )
)
FINDINGS.add(
    Finding(
        name="host-work",
        what=Text(
            en="The device idles {free} a step while the host is in {call}",
            zh="host 执行 {call} 期间，设备每迭代空闲 {free}",
        ),
        change=Text(
            en="Take this work out of the step: prepare it ahead in other processes, or compute it "
            "on the device.",
            zh="将这部分工作移出迭代：在其他进程中提前准备，或放到设备上计算。",
        ),
        search=host_work,
        place=24,
        view="host",
    )
)
FINDINGS.add(
    Finding(
        name="collector",
        what=Text(
            en="Garbage collection takes {stood} of the host's time a step",
            zh="垃圾回收每迭代占用 host {stood}",
        ),
        change=Text(
            en="Let Python's garbage collector run between epochs (gc.freeze, gc.disable).",
            zh="让 Python 垃圾回收只在 epoch 之间运行（gc.freeze、gc.disable）。",
        ),
        search=garbage_collection,
        place=22,
        view="host",
    )
)
FINDINGS.add(
    Finding(
        name="launching",
        what=Text(
            en="The host launches too slowly: the device idles {free} a step meanwhile",
            zh="host 下发过慢：其间设备每迭代空闲 {free}",
        ),
        change=_LAUNCH_LESS,
        search=slow_launches,
        place=23,
        setting="training.compile",
        view="launches",
    )
)
FINDINGS.add(
    Finding(
        name="memory-copies",
        what=Text(
            en="Memory copies that nothing computes beside: {bare} a step",
            zh="未被计算掩盖的内存拷贝：每迭代 {bare}",
        ),
        change=Text(
            en="Copy the next batch while this one is computed: pinned memory, non_blocking=True "
            "and a stream of its own; copy less, in smaller types.",
            zh="在计算当前 batch 时拷贝下一个 batch：锁页内存、non_blocking=True 和单独的流；"
            "减少拷贝量，使用更小的数据类型。",
        ),
        search=memory_copies,
        place=24,
        view="steps",
    )
)
FINDINGS.add(
    Finding(
        name="free",
        what=Text(
            en="Device idle, cause unknown: {free} a step",
            zh="设备空闲，原因未知：每迭代 {free}",
        ),
        change=Text(en=f"{{record}}{_LAUNCH_LESS.en}", zh=f"{{record}}{_LAUNCH_LESS.zh}"),
        search=unexplained,
        place=25,
        setting="training.compile",
        view="launches",
    )
)
