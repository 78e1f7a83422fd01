"""Turns the records of the npu_bridge stand-in into sentences in both languages.

The stand-in runs in the script's own Python and writes English. It has only a few sentences about
options, with fixed parts, which are recognised here by patterns.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from jumar.ground.text import Text
from jumar.porting.check.wording import NOTHING, as_is

_OPTIONS_SHOWN = 6
_PROBLEM_KINDS = {
    "ignored option": Text(en="ignored option: {text}", zh="被忽略的选项：{text}"),
    "refused option": Text(en="refused option: {text}", zh="被拒绝的选项：{text}"),
}
_KINDS = {
    "dropped argument": Text(en="dropped argument", zh="被丢弃的参数"),
    "loss scale": Text(en="loss scale", zh="loss scale"),
    "graph options": Text(en="graph options", zh="图选项"),
    "resource": Text(en="resource", zh="资源"),
}
_SESSION = Text(en="session: {what}{times}", zh="会话：{what}{times}")
_BRIDGE = Text(en="npu_bridge: {what}{times}", zh="npu_bridge：{what}{times}")
_CALL = Text(en="{kind} {call}", zh="{kind} {call}")
_TIMES = Text(en=" ({count} times)", zh="（{count} 次）")
_LOOP = Text(en="runs {steps} steps per call", zh="每次 run 执行 {steps} 步")
_ON_HOST = Text(
    en="without NpuOptimizer, stays on the host", zh="没有 NpuOptimizer，留在主机上运行"
)
_WITH = Text(en="NpuOptimizer with {options}{more}", zh="NpuOptimizer，选项为 {options}{more}")
_MORE = Text(en=", and {count} more", zh="，另有 {count} 项")
_WITHOUT = Text(en="NpuOptimizer without options", zh="NpuOptimizer，没有选项")

_VALUE_SENTENCES: Final = tuple(
    (re.compile(pattern, re.DOTALL), chinese)
    for pattern, chinese in (
        (
            r"no such option, it has no effect; did you mean '(.*)'\?",
            "没有这个选项，不起作用；是否想写 '{0}'？",
        ),
        (r"no such option, it has no effect", "没有这个选项，不起作用"),
        (
            r"it is not set, but read from (\S+) \(.*\), so it counts as (.*)",
            "没有赋值，而适配器从 {0} 读取，因此按 {1} 处理",
        ),
        (
            r"it is set in (\S+), but read from (\S+) \(.*\), so it counts as (.*)",
            "写在 {0} 中，而适配器从 {1} 读取，因此按 {2} 处理",
        ),
        (r"must be set in \.s \(bytes\)", "必须写在 .s（字节串）中"),
        (r"did you mean '(.*)'\? allowed values are (.*)", "是否想写 '{0}'？允许的值为 {1}"),
        (r"allowed values are (.*)", "允许的值为 {0}"),
        (r"must be (\d+) or more", "必须不小于 {0}"),
        (r"must be (\d+) or (\d+)", "必须为 {0} 或 {1}"),
        (r"must be (\d+) to (\d+)", "必须在 {0} 到 {1} 之间"),
        (
            r"must be 1 if dynamic_graph_execute_mode is lazy_recompile",
            "dynamic_graph_execute_mode 为 lazy_recompile 时必须为 1",
        ),
        (r"write it like '(.*)'", "请按 '{0}' 的形式书写"),
        (r"dump_path must be set in the same block", "必须在同一选项块中设置 dump_path"),
        (r"at most (\d+) groups", "最多 {0} 组"),
        (r"'(.*)' is not ascending", "'{0}' 不是递增的"),
        (r"the folder does not exist", "没有这个文件夹"),
        (r"the folder cannot be read and written", "该文件夹无法读写"),
        (r"an empty value only leaves a line in the log", "空值只会在日志中留下一行"),
        (r"only read if (.*) is true", "仅当 {0} 为真时才会读取"),
        (
            r"only with a mixed-precision mode in the same block: precision_mode (.*) "
            r"or precision_mode_v2 (.*)",
            "只能与同一选项块中的混合精度模式一起使用："
            "precision_mode 为 {0}，或 precision_mode_v2 为 {1}",
        ),
        (r"not together with (\w+)", "不能与 {0} 同时使用"),
        (r"(\w+) must also be set", "必须同时设置 {0}"),
        (r"set (.*) together", "{0} 必须一起设置"),
        (r"has no effect, it is (.*)", "不起作用：{0}"),
    )
)
"""Sentences about a value, as the stand-in writes them after `option = value: `."""

_WHOLE_SENTENCES: Final = (
    (
        re.compile(
            r"(\w+) is (\w+): set rewrite_options\.\w+ = RewriterConfig\.OFF next to the block"
        ),
        "{0} 为 {1}：请在选项块旁设置 rewrite_options.{0} = RewriterConfig.OFF",
    ),
    (
        re.compile(r"(\d+) steps per run, but no NpuOptimizer block has iterations_per_loop = \d+"),
        "每次 run 执行 {0} 步，但没有 NpuOptimizer 选项块带有 iterations_per_loop = {0}",
    ),
    (
        re.compile(r"(\w+) has no effect, it is (.*)"),
        "{0} 不起作用：{1}",
    ),
    (
        re.compile(
            r"(\w+) drops its argument, because it is an? (\w+) and not an? (\w+)(?:: (.*))?",
            re.DOTALL,
        ),
        "{0} 丢弃了它的参数，因为参数是 {1} 而不是 {2}",
    ),
)
_PARTS: Final = {
    "an option of an older adapter": "属于旧版适配器",
    "an option of an older adapter; set precision_mode instead": "属于旧版适配器；"
    "请改设 precision_mode",
    "written by NPUEstimator, read by no part of the adapter": "由 NPUEstimator 写入，"
    "适配器各处都不读取",
}


def standin_lines(events: Iterable[Mapping[str, Any]]) -> Iterator[Text]:
    """Yield lines about sessions with their options, and about calls of npu_bridge."""
    sessions: Counter[Text] = Counter()
    calls: Counter[Text] = Counter()
    problems: dict[Text, None] = {}
    for event in events:
        kind = str(event.get("kind", ""))
        if kind == "session":
            sessions[_session(event)] += 1
        elif kind in _PROBLEM_KINDS:
            problems[_PROBLEM_KINDS[kind].filled(text=standin_sentence(event))] = None
        else:
            calls[_other(kind, event)] += 1
    for text, count in sessions.items():
        yield _SESSION.filled(what=text, times=_times(count))
    yield from problems
    for text, count in calls.items():
        yield _BRIDGE.filled(what=text, times=_times(count))


def standin_sentence(event: Mapping[str, Any]) -> Text:
    """Return the sentence of an event about an option or argument."""
    english = str(event.get("text", event.get("key", "")))
    for pattern, chinese in _WHOLE_SENTENCES:
        if match := pattern.fullmatch(english):
            return Text(en=english, zh=_chinese(chinese, match))
    head, colon, tail = english.partition(": ")
    # A value may also contain ": ", so the text after each occurrence is tried.
    while colon:
        for pattern, chinese in _VALUE_SENTENCES:
            if match := pattern.fullmatch(tail):
                return Text(en=english, zh=f"{head}：{_chinese(chinese, match)}")
        part, colon, tail = tail.partition(": ")
        head = f"{head}: {part}"
    return as_is(english)


def _chinese(sentence: str, match: "re.Match[str]") -> str:
    parts = (_PARTS.get(part, part) for part in match.groups(default=""))
    return sentence.format(*(part.replace(" or ", " 或 ") for part in parts))


def _other(kind: str, event: Mapping[str, Any]) -> Text:
    kind_text = _KINDS.get(kind, as_is(kind))
    return _CALL.filled(kind=kind_text, call=event["call"]) if "call" in event else kind_text


def _times(count: int) -> Text:
    return _TIMES.filled(count=count) if count > 1 else NOTHING


def _session(event: Mapping[str, Any]) -> Text:
    if "iterations_per_loop" in event:
        return _LOOP.filled(steps=event["iterations_per_loop"])
    if not event.get("npu"):
        return _ON_HOST
    blocks: list[Mapping[str, Any]] = list(event.get("options", ()))
    options = [f"{key}={value}" for block in blocks for key, value in block.items()]
    if not options:
        return _WITHOUT
    rest = len(options) - _OPTIONS_SHOWN
    more = _MORE.filled(count=rest) if rest > 0 else NOTHING
    return _WITH.filled(options=", ".join(options[:_OPTIONS_SHOWN]), more=more)
