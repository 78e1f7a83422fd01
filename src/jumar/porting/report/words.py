"""The labels and sentences of the reports, in both languages."""

from dataclasses import dataclass

from jumar.porting.edits import Confidence, FileStatus, Language, Severity


@dataclass(frozen=True, kw_only=True)
class Words:
    """All texts of a report except those of the rules."""

    tag: str
    """The HTML language tag."""
    colon: str
    """The separator between a label and its value."""
    title: str
    options: str
    default_options: str
    version: str
    files: str
    file: str
    status: str
    edits: str
    findings: str
    kept: str
    added: str
    by_rule: str
    rule: str
    place: str
    code: str
    reason: str
    todo: str
    source: str
    severity: str
    confidence: str
    severities: dict[Severity, str]
    severity_meanings: dict[Severity, str]
    confidences: dict[Confidence, str]
    statuses: dict[FileStatus, str]
    status_meanings: dict[FileStatus, str]
    first: str
    no_findings: str
    no_edits: str
    every_edit: str
    removed: str
    note: str
    kept_meaning: str
    kept_unlisted: str
    next_step: str
    more: str
    also: str
    files_without_edits: str
    difference: str
    before: str
    after: str
    filters: str
    path_contains: str
    any: str
    show_reasons: str
    reset: str
    open_all: str
    close_all: str
    same_lines: str
    left_out_lines: str
    left_out_difference: str
    left_out_findings: str
    left_out_files: str
    left_out_kept: str
    clipped: str
    no_newline: str
    keys: str
    footer: str

    def count(self, name: str, number: int) -> str:
        """Return a count after its label, which avoids plurals."""
        return f"{name}{self.colon}{number:,}"


ENGLISH = Words(
    tag="en",
    colon=": ",
    title="Port of {root}",
    options="options",
    default_options="none",
    version="jumar",
    files="files",
    file="file",
    status="status",
    edits="edits",
    findings="findings",
    kept="left on purpose",
    added="files added",
    by_rule="By rule",
    rule="rule",
    place="place",
    code="code",
    reason="reason",
    todo="what to do",
    source="source",
    severity="severity",
    confidence="confidence",
    severities={
        "blocking": "blocking",
        "accuracy": "accuracy",
        "speed": "speed",
        "look": "look",
    },
    severity_meanings={
        "blocking": "does not run on the NPU as it is",
        "accuracy": "may compute something else",
        "speed": "runs, but slowly",
        "look": "may be fine: have a look",
    },
    confidences={"certain": "certain", "likely": "likely", "unsure": "unsure"},
    statuses={
        "ported": "ported",
        "unchanged": "unchanged",
        "copied": "copied",
        "unreadable": "unreadable",
    },
    status_meanings={
        "ported": "with edits",
        "unchanged": "read, nothing to change",
        "copied": "not a script",
        "unreadable": "could not be read as a script; copied as it is",
    },
    first="To do by hand",
    no_findings="Nothing has to be done by hand.",
    no_edits="No file was changed.",
    every_edit="Every edit",
    removed="removed",
    note="note",
    kept_meaning="Code that a rule examined and left as it is.",
    kept_unlisted="The JSON report lists all of them.",
    next_step="Next",
    more="{count} more; write a report to list them all: --report FILE.html",
    also="and {count} more",
    files_without_edits="Files without edits",
    difference="Differences",
    before="before",
    after="after",
    filters="Filters",
    path_contains="path contains",
    any="any",
    show_reasons="show reasons",
    reset="reset",
    open_all="open all files",
    close_all="close all files",
    same_lines="unchanged lines: {count}",
    left_out_lines="unchanged lines, left out of this page: {count}",
    left_out_difference="The differences of this file are left out to keep the page small. "
    "The JSON report has them.",
    left_out_findings="Findings left out to keep the page small: {count}. The JSON report has all.",
    left_out_files="Files left out of this list: {count}. The JSON report has all.",
    left_out_kept="Entries left out of this list: {count}. The JSON report has all.",
    clipped="characters left out: {count}",
    no_newline="no newline",
    keys="Keys: n and p jump to the next and previous edit or finding, / jumps to the filters.",
    footer="Written by jumar. This page is one file and needs no network.",
)

CHINESE = Words(
    tag="zh-Hans",
    colon="：",
    title="{root} 迁移报告",
    options="选项",
    default_options="无",
    version="jumar 版本",
    files="文件",
    file="文件",
    status="状态",
    edits="修改",
    findings="待人工处理",
    kept="有意保留",
    added="新增文件",
    by_rule="按规则统计",
    rule="规则",
    place="位置",
    code="代码",
    reason="原因",
    todo="处理方法",
    source="依据",
    severity="严重程度",
    confidence="置信度",
    severities={"blocking": "阻塞", "accuracy": "精度", "speed": "性能", "look": "待确认"},
    severity_meanings={
        "blocking": "不处理则无法在 NPU 上运行",
        "accuracy": "计算结果可能不同",
        "speed": "能运行，但速度慢",
        "look": "可能没有问题，请确认",
    },
    confidences={"certain": "确定", "likely": "很可能", "unsure": "不确定"},
    statuses={
        "ported": "已迁移",
        "unchanged": "无需修改",
        "copied": "原样复制",
        "unreadable": "无法读取",
    },
    status_meanings={
        "ported": "有修改",
        "unchanged": "已读取，无需修改",
        "copied": "不是脚本",
        "unreadable": "无法作为脚本读取，已原样复制",
    },
    first="需要人工处理的地方",
    no_findings="没有需要人工处理的地方。",
    no_edits="没有文件被修改。",
    every_edit="全部修改",
    removed="已删除",
    note="说明",
    kept_meaning="规则检查过、有意保持原样的地方。",
    kept_unlisted="JSON 报告中有完整列表。",
    next_step="下一步",
    more="另有 {count} 处，完整列表请生成报告：--report FILE.html",
    also="另有 {count} 处",
    files_without_edits="未修改的文件",
    difference="修改对比",
    before="迁移前",
    after="迁移后",
    filters="筛选",
    path_contains="路径包含",
    any="全部",
    show_reasons="显示原因",
    reset="重置",
    open_all="展开全部文件",
    close_all="折叠全部文件",
    same_lines="未修改的行：{count}",
    left_out_lines="未修改的行（未收入本页）：{count}",
    left_out_difference="为控制页面大小，此文件的修改对比未收入本页，完整内容见 JSON 报告。",
    left_out_findings="为控制页面大小，另有 {count} 处待处理项未列出，完整内容见 JSON 报告。",
    left_out_files="另有 {count} 个文件未列出，完整内容见 JSON 报告。",
    left_out_kept="另有 {count} 处未列出，完整内容见 JSON 报告。",
    clipped="省略的字符数：{count}",
    no_newline="无换行符",
    keys="按键：n、p 跳到下一处、上一处修改或待处理项，/ 跳到筛选栏。",
    footer="由 jumar 生成。本页为单个文件，无需联网。",
)


def words(language: Language) -> Words:
    """Return the labels of a language."""
    return CHINESE if language == "zh" else ENGLISH
