"""The texts of terminal output and page in both languages, except those of views and findings."""

from collections.abc import Mapping
from typing import Final

from jumar.ground.text import Language, Text, counted
from jumar.profiling.profile import Missing, Profile
from jumar.profiling.showing import shown

TEXTS: Final[Mapping[str, Text]] = {
    "tag": Text(en="en", zh="zh-CN"),
    "colon": Text(en=": ", zh="："),
    # What was read.
    "source": Text(en="Source", zh="来源"),
    "producer": Text(en="Recorded by", zh="采集工具"),
    "device": Text(en="Device", zh="设备"),
    "chip": Text(en="Chip", zh="芯片"),
    "rates": Text(en="chip: ", zh="芯片："),
    "ops": Text(en="Ops", zh="算子"),
    "calls": Text(en="Host calls", zh="host 调用"),
    "ranks": Text(en="Ranks", zh="卡"),
    "missing": Text(en="missing: ", zh="缺失："),
    "not_read": Text(en="not read: ", zh="未读取："),
    "of_ranks": Text(en=" of {ranks} ranks", zh="（{ranks} 张卡）"),
    "not_named": Text(en="unknown", zh="未标明"),
    "needed_for": Text(en=" (needed for {views})", zh="（{views} 需要）"),
    # Views and advice.
    "nothing": Text(en="none", zh="无"),
    "cut": Text(
        en="the first {shown} of {rows:,} rows; all: "
        "jumar profile show PROFILE --view {name} --top 0",
        zh="仅显示 {rows:,} 行中的前 {shown} 行；全部："
        "jumar profile show PROFILE --view {name} --top 0",
    ),
    "takes_long": Text(
        en="slow with more than {ops:,} ops: jumar profile show PROFILE --view {name}",
        zh="算子超过 {ops:,} 个时耗时较长：jumar profile show PROFILE --view {name}",
    ),
    "impossible": Text(en="Not available for this profile", zh="此性能数据无法给出"),
    "more_views": Text(
        en="More views (--view): {views}, all", zh="更多视图（--view）：{views}, all"
    ),
    "all_views": Text(en="Views", zh="视图"),
    "no_advice": Text(
        en="nothing that would save a thousandth of a step",
        zh="没有值得优化的问题（均低于迭代的千分之一）",
    ),
    "try": Text(en="try: ", zh="建议："),
    "see": Text(en="see: --view {view}", zh="参见：--view {view}"),
    "of_step": Text(en="{share} % of a step", zh="占迭代 {share} %"),
    "at_most": Text(en="at most", zh="上限"),
    "adds_up": Text(
        en="No time is counted twice, so the savings add up.",
        zh="迭代中的每个时刻只计一次，因此各项收益可以相加。",
    ),
    # Steps and comparison on the page.
    "title": Text(en="Profile of {source}", zh="{source} 的性能分析"),
    "step_times": Text(en="Where each step's time goes (ms)", zh="每个迭代的时间去向（ms）"),
    "advice": Text(
        en="What to do, by possible saving per step",
        zh="优化建议，按每迭代可节省的毫秒数排序",
    ),
    "computing": Text(en="computing", zh="计算"),
    "uncovered": Text(en="uncovered communication", zh="未掩盖通信"),
    "preparing": Text(en="before the first op", zh="首算子前准备"),
    "copying": Text(en="uncovered memory copies", zh="未掩盖内存拷贝"),
    "free": Text(en="idle", zh="空闲"),
    "step": Text(en="step {step}", zh="迭代 {step}"),
    "rank_step": Text(en="rank {rank}, step {step}", zh="卡 {rank}，迭代 {step}"),
    "against": Text(en="Compared with {before}", zh="与 {before} 对比"),
    "against_first": Text(en="compared with {before}", zh="与 {before} 对比"),
    "before": Text(
        en="before {duration} ms per step{spread}: {source} ({device}, rank {rank})",
        zh="之前：每迭代 {duration} ms{spread}：{source}（{device}，卡 {rank}）",
    ),
    "after": Text(
        en="after  {duration} ms per step{spread}: {source} ({device}, rank {rank})",
        zh="之后：每迭代 {duration} ms{spread}：{source}（{device}，卡 {rank}）",
    ),
    "change": Text(
        en="change {delta} ms per step, {ratio} times as fast; {steps} of each",
        zh="变化：每迭代 {delta} ms，速度为之前的 {ratio} 倍；双方各取 {steps} 个迭代",
    ),
    "note": Text(en="note: ", zh="注意："),
    "varies": Text(en=" (within the variation between steps)", zh="（在迭代间波动范围内）"),
    "no_edits": Text(
        en="none that would save 0.2 % of a step", zh="没有能节省 0.2 % 迭代时间的修改"
    ),
    "step_before": Text(en="step before", zh="之前的迭代"),
    "step_after": Text(en="step", zh="迭代"),
    "step_change": Text(en="change", zh="变化"),
    "compared": Text(
        en="A step takes {after} ms, compared with {before} ms before. The parts add up exactly to "
        "the difference of {delta} ms; {steps} compared.",
        zh="每迭代 {after} ms，之前为 {before} ms。各部分之和恰好等于差值 {delta} ms；"
        "双方各取 {steps} 个迭代。",
    ),
    # Timeline and op table of the page.
    "timeline": Text(en="Timeline", zh="时间线"),
    "zoom_in": Text(en="Zoom in", zh="放大"),
    "zoom_out": Text(en="Zoom out", zh="缩小"),
    "earlier": Text(en="Earlier", zh="向前"),
    "later": Text(en="Later", zh="向后"),
    "all": Text(en="All", zh="全部"),
    "choose_step": Text(en="Step", zh="迭代"),
    "canvas": Text(
        en="Timeline of ops and host calls. Arrow keys move, plus and minus zoom, 0 shows all, n "
        "and p go to the next and previous op, up and down switch lanes, m marks the op or the "
        "visible range, Escape clears the mark, slash searches.",
        zh="算子与 host 调用的时间线。方向键移动，加减号缩放，0 显示全部，n 和 p 转到"
        "下一个和上一个算子，上下键切换泳道，m 标记算子或当前视图，Esc 取消标记，/ 搜索。",
    ),
    "hint": Text(
        en="Drag to move, Ctrl and wheel to zoom, Shift and drag to mark a range, click to select "
        "an op. Keyboard: arrows, + and −, 0 for all, n and p for the next and previous op, m to "
        "mark, / to search.",
        zh="拖动可移动，Ctrl 加滚轮可缩放，按住 Shift 拖动可标记一段时间，单击可选中算子。键盘："
        "方向键、+ 和 −、0 显示全部、n 和 p 转到下一个和上一个算子、m 标记、/ 搜索。",
    ),
    "host_calls": Text(en="Host calls", zh="host 调用"),
    "host_thread": Text(en="host thread {name}", zh="host 线程 {name}"),
    "host_layer": Text(en="host: {layer}", zh="host：{layer}"),
    "call_count": Text(en="{count} calls", zh="{count} 次调用"),
    "calls_together": Text(
        en="{count} host calls, {busy} in total; longest: {longest}",
        zh="{count} 次 host 调用，合计 {busy}；最长：{longest}",
    ),
    "calls_left_out": Text(
        en="{count} shorter host calls not shown", zh="省略 {count} 次较短的 host 调用"
    ),
    "threads_left_out": Text(en="{count} host threads not shown", zh="省略 {count} 个 host 线程"),
    "too_deep": Text(
        en="{count} deeply nested calls are shown only in the flame graph",
        zh="{count} 次过深的调用只在火焰图中",
    ),
    "shorter_calls": Text(
        en="host calls shorter than {width} are merged", zh="短于 {width} 的 host 调用已合并"
    ),
    "curves_left_out": Text(en="{count} memory curves not shown", zh="省略 {count} 条内存曲线"),
    "launched": Text(en="launched {ahead} before its start", zh="开始前 {ahead} 下发"),
    "memory_of": Text(en="memory {name}", zh="内存 {name}"),
    "find": Text(en="Find", zh="查找"),
    "next_match": Text(en="Next match", zh="下一个匹配"),
    "matching_ops": Text(en="{count} ops, {total} ms", zh="{count} 个算子，{total} ms"),
    "matching_calls": Text(en="{count} host calls", zh="{count} 次 host 调用"),
    "mark": Text(en="Mark", zh="标记"),
    "unmark": Text(en="Clear the mark", zh="取消标记"),
    "marked": Text(en="Marked: {length}, {from} to {to}", zh="已标记：{length}，{from} 至 {to}"),
    "shorter_share": Text(
        en="ops shorter than {width} are merged here: they count by the marked share of their "
        "group, and gaps between them are not visible",
        zh="短于 {width} 的算子在此已合并：按其分组被标记的比例计入，其间的空隙不可见",
    ),
    "nothing_runs": Text(en="no op runs in any lane", zh="所有泳道均无算子"),
    "other_types": Text(en="{count} other types", zh="其他 {count} 种类型"),
    "of_range": Text(en="% of the range", zh="占该段(%)"),
    "lane": Text(en="lane", zh="泳道"),
    "show_interval": Text(en="Show on the timeline", zh="在时间线上显示"),
    "interval_of": Text(
        en="Interval {number} of the {shown} longest; {all} in total",
        zh="最长的 {shown} 处中的第 {number} 处，共 {all} 处",
    ),
    "call_trees": Text(en="Flame graph", zh="火焰图"),
    "by_layer": Text(en="ops by layer of the network", zh="算子，按网络层"),
    "by_caller": Text(en="host calls by caller", zh="host 调用，按调用者"),
    "flame_hint": Text(
        en="Width shows time; click a bar to zoom in, the top bar to zoom out.",
        zh="宽度表示时间；单击条形可放大，单击最上方的条形可显示全部。",
    ),
    "all_ops": Text(en="all ops", zh="全部算子"),
    "all_threads": Text(en="all threads", zh="全部线程"),
    "no_layer": Text(en="no layer recorded", zh="未记录网络层"),
    "itself": Text(en="self {own} ms", zh="自身 {own} ms"),
    "times": Text(en="count {count}", zh="{count} 次"),
    "filter": Text(en="Filter ops", zh="筛选算子"),
    "contains": Text(en="Contains", zh="包含"),
    "core": Text(en="Core", zh="计算核"),
    "kind": Text(en="Kind", zh="种类"),
    "any": Text(en="any", zh="不限"),
    "group_by": Text(en="Group by", zh="分组"),
    "by_type": Text(en="type", zh="类型"),
    "by_core": Text(en="core", zh="计算核"),
    "by_dtypes": Text(en="dtypes", zh="数据类型"),
    "by_shapes": Text(en="shapes", zh="形状"),
    "by_module": Text(en="module", zh="网络层"),
    "merged_groups": Text(
        en="{count} small groups are merged by type, without shapes, dtypes and modules.",
        zh="{count} 个较小的分组已按类型合并，此处不显示其形状、数据类型和网络层。",
    ),
    "no_script": Text(
        en="The timeline and the op table need JavaScript; everything else is above.",
        zh="时间线和算子表需要 JavaScript，其余内容均在上方。",
    ),
    "footer": Text(
        en="Written by jumar. This page is one file and needs no network.",
        zh="由 jumar 生成。本页面为单个文件，无需联网。",
    ),
    "total_ms": Text(en="total ms", zh="总耗时(ms)"),
    "share": Text(en="% of total", zh="占比(%)"),
    "count": Text(en="count", zh="次数"),
    "mean_ms": Text(en="mean ms", zh="平均(ms)"),
    "min_ms": Text(en="min ms", zh="最小(ms)"),
    "max_ms": Text(en="max ms", zh="最大(ms)"),
    "kind_compute": Text(en="computing", zh="计算"),
    "kind_aicpu": Text(en="AI CPU", zh="AI CPU"),
    "kind_cast": Text(en="casts", zh="类型转换"),
    "kind_format": Text(en="format changes", zh="格式转换"),
    "kind_communication": Text(en="communication", zh="通信"),
    "kind_copy": Text(en="memcpy, memset", zh="memcpy、memset"),
    "shown_groups": Text(en="{shown} of {all} groups", zh="显示 {all} 组中的 {shown} 组"),
    "op_count": Text(en="{count} ops", zh="{count} 个算子"),
    "every_op": Text(en="every op", zh="显示每个算子"),
    "shorter": Text(en="ops shorter than {width} are merged", zh="短于 {width} 的算子已合并"),
    "left_out": Text(en="{count} lanes not shown", zh="省略 {count} 条泳道"),
    "from_to": Text(en="{from} to {to}", zh="{from} 至 {to}"),
    "at": Text(en="from {from} to {to}", zh="位于 {from} 至 {to}"),
    "together": Text(
        en="{count} ops, {busy} in total; longest: {longest}",
        zh="{count} 个算子，合计 {busy}；最长：{longest}",
    ),
    "stream": Text(en="stream {name}", zh="流 {name}"),
    "thread": Text(en="thread {name}", zh="线程 {name}"),
    "communication": Text(en="communication", zh="通信"),
    "only_ops": Text(en="ops", zh="算子"),
    "of_rank": Text(en="rank {rank} · {name}", zh="卡 {rank} · {name}"),
}


def texts_in(language: Language) -> dict[str, str]:
    """All texts in one language; some have `{name}` placeholders."""
    return {name: text.in_language(language) for name, text in TEXTS.items()}


def summary_line(profile: Profile, language: Language) -> str:
    """A line that summarizes what was read."""
    ops, calls, ranks = profile.ops.height, profile.host.height, len(profile.ranks)
    chip = f", {shown(profile.chip, 48)}" if profile.chip else ""
    of_ranks = TEXTS["of_ranks"].filled(ranks=ranks).in_language(language) if ranks > 1 else ""
    start = f"{shown(profile.source, 200)}: {profile.producer}, {profile.kind}{chip}; "
    if language == "zh":
        return f"{start}{ops} 个算子{of_ranks}，{calls} 次 host 调用"
    return f"{start}{counted(ops, 'op')}{of_ranks}, {counted(calls, 'host call')}"


def with_rank(name: str, rank: int, profile: Profile, language: Language) -> str:
    """A name for display, with its rank if the profile has several."""
    if len(profile.ranks) > 1:
        name = TEXTS["of_rank"].in_language(language).format(rank=rank, name=name)
    return shown(name, 40)


_NOT_READ: Final = ("not read: ", "cannot be read: ")
"""Beginnings of the notes on files that exist, but of which nothing was read."""


def gap_line(gap: Missing, language: Language) -> tuple[str, str]:
    """A word for an entry of `Profile.missing`, such as `missing: `, and the line after it."""
    what = gap.what
    for start in _NOT_READ:
        what = what.removeprefix(start)
    word = TEXTS["missing" if what == gap.what else "not_read"].in_language(language)
    return word, f"{shown(gap.file)}: {shown(what, 300)}"


def missing_lines(profile: Profile, language: Language) -> list[tuple[str, str]]:
    """`gap_line` for each entry of `Profile.missing`, with the analyses that need it."""
    lines: list[tuple[str, str]] = []
    for gap in profile.missing:
        word, line = gap_line(gap, language)
        needed = TEXTS["needed_for"].filled(views=shown(", ".join(gap.needed_for)))
        lines.append((word, line + (needed.in_language(language) if gap.needed_for else "")))
    return lines
