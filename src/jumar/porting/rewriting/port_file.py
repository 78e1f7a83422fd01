"""Apply all rules to one script: the new text, and the list of edits and findings."""

import ast
from dataclasses import dataclass, replace
from typing import TypeVar

from jumar.porting.edits import Edit, FileReport, Finding, Kept, Place, Text
from jumar.porting.options import PortOptions
from jumar.porting.python2.conversion import Converted, to_python3, with_python3_names
from jumar.porting.rewriting.applying import OffsetMap, applied, compatible, emptied_blocks, ordered
from jumar.porting.rewriting.changes import Changes, Leave, Notice, Replacement, Rewrite
from jumar.porting.rewriting.concerned import rules_may_apply
from jumar.porting.rewriting.emptied import empty_branches
from jumar.porting.rewriting.placing import addition, import_lines
from jumar.porting.rewriting.prelude import prelude
from jumar.porting.rewriting.registry import Rule, RuleIndex, rule_index
from jumar.porting.rewriting.view import View
from jumar.porting.script.module import Module, parsed_or_none
from jumar.porting.script.project import Project
from jumar.porting.script.source import Lines, SourceText

_Item = TypeVar("_Item", Edit, Finding)
_REFERENCES = (ast.Name, ast.Attribute)
_MAX_ROUNDS = 6
_MAX_EXCERPT = 1500
_NEAR = 200
"""Maximum distance from a node, in characters, of an insertion that is shown with it."""
_IMPORT_RULE = "npu-import"
_IMPORT_REASON = Text(
    en="the new code's imports are listed by name: a star import would shadow the script's own "
    "names, such as util, session and backend",
    zh="按名称导入新代码所用的内容：星号导入会遮蔽脚本自身的 util、session、backend 等名称",
)
_TORCH_NPU_REASON = Text(
    en="importing torch_npu registers the device 'npu' and torch.npu; the import is unconditional, "
    "so that the script fails at once on a machine without torch_npu",
    zh="导入 torch_npu 会注册 npu 设备与 torch.npu；直接导入，缺少该包时立即报错",
)
_TORCH_NPU_SOURCE = "quick start of Ascend/pytorch (torch_npu)"
_FUNCTION_REASON = Text(
    en="the session options of this port, in one place",
    zh="本次移植的会话选项集中于此处",
)
_NOT_CONVERGED = Text(
    en="the rules do not converge on this script, which is left unchanged ({rules})",
    zh="规则在该脚本上无法收敛，脚本保持原样（{rules}）",
)
_NOT_CONVERGED_ADVICE = Text(
    en="port it by hand, and please report it: this is a bug in jumar",
    zh="请手工移植，并反馈此问题：这是 jumar 的缺陷",
)
_SOURCE = "npu_init.py of Ascend/tensorflow, which has no __all__"


@dataclass(frozen=True)
class _Requests:
    """The changes that all rules request for a text in one round."""

    module: Module
    rewrites: list[tuple[Rule, Rewrite]]
    notices: list[tuple[Rule, Notice]]
    leaves: list[tuple[Rule, Leave]]


@dataclass(frozen=True)
class _Round:
    """The requests of one round, and the text with its rewrites applied."""

    requests: _Requests
    added: list[tuple[Replacement, str]]
    offsets: OffsetMap
    text: str
    tree: ast.Module


def port_file(
    source: SourceText,
    path: str,
    project: Project,
    options: PortOptions,
    *,
    force: bool = False,
) -> FileReport:
    """Rewrite one script for the NPU.

    The rules are applied until none has anything left to change, so that porting the result again
    changes nothing.

    Args:
        source: The script.
        path: Its path within the tree, with forward slashes.
        project: The tree, for imports of its own modules.
        options: The port's options.
        force: Whether to apply the rules even if the script mentions nothing that they port.
    """
    if not force and not rules_may_apply(source, options):
        return FileReport(path=path, status="unchanged")
    try:
        module = project.parsed(source.text, path)
        converted = with_python3_names(
            source.text, module.tree, lambda name: project.find(name, path) is not None
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        module = None
        converted = to_python3(source.text) if isinstance(error, SyntaxError) else None
        if converted is None:
            return FileReport(path=path, status="unreadable", note=_unreadable_note(error))
    if converted is not None:
        module = Module(converted.text, path, project)
    assert module is not None
    rounds = _rounds(module, options)
    last_requests = rounds[-1].requests
    if last_requests.rewrites:
        return FileReport(path=path, status="unchanged", findings=(_not_converged(last_requests),))
    history = _History(rounds, converted)
    final = rounds[-1].text
    mark = "\ufeff" if source.bom else ""
    return FileReport(
        path=path,
        status="unchanged" if final == source.text else "ported",
        edits=tuple(sorted(history.edits(), key=lambda item: (item.place, item.rule))),
        findings=tuple(sorted(history.findings(), key=lambda item: (item.place, item.rule))),
        kept=history.kept(),
        before="" if final == source.text else f"{mark}{source.text}",
        after="" if final == source.text else f"{mark}{final}",
    )


def _rounds(module: Module, options: PortOptions) -> list[_Round]:
    """Rounds of all rules; the last one has rewrites only if the rules do not converge."""
    rounds: list[_Round] = []
    originally_empty = empty_branches(module.tree)
    for _ in range(_MAX_ROUNDS):
        view = View(module, options, originally_empty)
        requests = _run_rules(view, rule_index(options.source, options.minimal))
        round_ = _apply(view, requests)
        if round_ is None:
            rounds.append(_Round(requests, [], OffsetMap([]), module.text, module.tree))
            break
        rounds.append(round_)
        module = Module(round_.text, module.path, module.project, round_.tree)
    return rounds


def _not_converged(last: _Requests) -> Finding:
    """The finding for a script that the rules would change forever; it is left unchanged."""
    rule, rewrite = last.rewrites[0]
    names = ", ".join(sorted({last_rule.id for last_rule, _ in last.rewrites}))
    return Finding(
        rule=rule.id,
        place=last.module.lines.place(last.module.span(rewrite.node)[0]),
        place_after=None,
        code=_excerpt(last.module.source(rewrite.node)),
        reason=_NOT_CONVERGED.filled(rules=names),
        todo=_NOT_CONVERGED_ADVICE,
        severity="blocking",
        confidence="certain",
        source=rule.source,
    )


def _run_rules(view: View, index: RuleIndex) -> _Requests:
    requests = _Requests(view.module, [], [], [])
    for rule in index.of_module:
        _collect(rule, rule.check(view.module.tree, view), requests)
    by_node = index.by_node
    for node in view.module.scopes.nodes:
        for rule in by_node.get(node.__class__, ()):
            _collect(rule, rule.check(node, view), requests)
        if isinstance(node, ast.Call) and index.has_calls:
            name = view.kinds.called(node)
            if name is not None:
                for rule in index.for_call(name):
                    _collect(rule, rule.check(node, view), requests)
        elif isinstance(node, _REFERENCES) and index.by_reference:
            name = view.module.name_of(node)
            for rule in index.by_reference.get(name or "", ()):
                _collect(rule, rule.check(node, view), requests)
    return requests


def _collect(rule: Rule, changes: Changes, requests: _Requests) -> None:
    for change in changes:
        if isinstance(change, Rewrite):
            requests.rewrites.append((rule, change))
        elif isinstance(change, Notice):
            requests.notices.append((rule, change))
        else:
            requests.leaves.append((rule, change))


def _apply(view: View, requests: _Requests) -> _Round | None:
    """Apply the rewrites; return None if there are none, or none that can be kept."""
    accepted = compatible([rewrite for _, rewrite in requests.rewrites])
    while accepted:
        accepted_ids = {id(rewrite) for rewrite in accepted}
        module = view.module
        additions = _added(view, accepted)
        changes = ordered(
            [change for rewrite in accepted for change in rewrite.replacements]
            + [replacement for replacement, _ in additions]
        )
        spans = {
            node: module.span(node) for node in module.scopes.nodes if isinstance(node, ast.stmt)
        }
        changes = emptied_blocks(module.tree, spans, changes)
        text = applied(module.text, changes)
        tree = parsed_or_none(text)
        if tree is not None:
            kept_rewrites = [
                (rule, change) for rule, change in requests.rewrites if id(change) in accepted_ids
            ]
            return _Round(
                replace(requests, rewrites=kept_rewrites), additions, OffsetMap(changes), text, tree
            )
        # Never write code that Python cannot parse: drop the last rewrite, then the one before it.
        accepted = accepted[:-1]
    return None


def _added(view: View, accepted: list[Rewrite]) -> list[tuple[Replacement, str]]:
    names = {name for rewrite in accepted for name in rewrite.imports}
    functions, needs = prelude(view, {name for rewrite in accepted for name in rewrite.functions})
    names |= needs
    lines = import_lines(view, names)
    if not lines and not functions:
        return []
    replacement = addition(view.module, lines, functions)
    return [(replacement, "\n".join(lines) or functions[0])]


class _History:
    """The edits and findings of all rounds, with positions in the first and the last text."""

    def __init__(self, rounds: list[_Round], converted: Converted | None) -> None:
        self.rounds = rounds
        self.converted = converted
        self.first = rounds[0].requests.module.lines
        self.last = Lines(rounds[-1].text)

    def edits(self) -> list[Edit]:
        edits = [self._moved(edit) for edit in self.converted.edits] if self.converted else []
        for number, round_ in enumerate(self.rounds):
            edits += [
                self._edit(number, rule, rewrite) for rule, rewrite in round_.requests.rewrites
            ]
            for replacement, text in round_.added:
                of_torch = "import torch_npu" in text
                reason = _FUNCTION_REASON
                if text.startswith(("from ", "import ")):
                    reason = _TORCH_NPU_REASON if of_torch else _IMPORT_REASON
                start = round_.offsets.forward(replacement.start) - len(replacement.text)
                edits.append(
                    Edit(
                        rule=_IMPORT_RULE,
                        place=self._original(number, replacement.start),
                        place_after=self._final(number + 1, start),
                        before="",
                        after=text,
                        reason=reason,
                        confidence="certain",
                        source=_TORCH_NPU_SOURCE if of_torch else _SOURCE,
                    )
                )
        return edits

    def findings(self) -> list[Finding]:
        """Findings of all rounds: some are only visible before the code is rewritten."""
        findings = [self._moved(item) for item in self.converted.findings] if self.converted else []
        findings += [
            self._finding(number, rule, notice)
            for number, round_ in enumerate(self.rounds)
            for rule, notice in round_.requests.notices
        ]
        unique: dict[tuple[str, Place, str], Finding] = {}
        for finding in findings:
            unique.setdefault((finding.rule, finding.place, finding.reason.en), finding)
        return list(unique.values())

    def kept(self) -> tuple[Kept, ...]:
        """What the first round left unchanged: later rounds see the port's own code."""
        module = self.rounds[0].requests.module
        return tuple(
            Kept(
                rule=rule.id,
                place=self._original(0, module.span(leave.node)[0]),
                code=_excerpt(module.source(leave.node)),
                reason=leave.reason,
            )
            for rule, leave in self.rounds[0].requests.leaves
        )

    def _edit(self, number: int, rule: Rule, rewrite: Rewrite) -> Edit:
        round_ = self.rounds[number]
        start, end = _shown_span(round_.requests.module, rewrite)
        is_inserted = any(change.start == change.end == start for change in rewrite.replacements)
        new_start = round_.offsets.forward(start, ahead=is_inserted)
        before = round_.requests.module.text[start:end]
        after = round_.text[new_start : round_.offsets.forward(end, end=True)]
        start += len(before) - len(before.lstrip())
        new_start += len(after) - len(after.lstrip())
        final = self._final(number + 1, new_start) if after.strip() else None
        if after.strip() == "pass" and not self._has_text_at("pass", final):
            # A later round has removed the empty branch.
            after, final = "", None
        return Edit(
            rule=rule.id,
            place=self._original(number, start),
            place_after=final,
            before=_excerpt(before.strip()),
            after=_excerpt(after.strip()),
            reason=rewrite.reason,
            confidence=rewrite.confidence,
            source=rule.source,
        )

    def _has_text_at(self, text: str, place: Place | None) -> bool:
        """Whether the last text has some text at a place."""
        if place is None:
            return False
        lines = self.rounds[-1].text.split("\n")
        return lines[place.line - 1][place.column - 1 :].startswith(text)

    def _finding(self, number: int, rule: Rule, notice: Notice) -> Finding:
        module = self.rounds[number].requests.module
        start, _ = module.span(notice.node)
        return notice.remark.finding(
            rule=rule.id,
            place=self._original(number, start),
            place_after=self._final(number, start),
            code=_excerpt(module.source(notice.node)),
            source=rule.source,
        )

    def _moved(self, item: _Item) -> _Item:
        """An edit or finding of the Python 2 conversion with its position in the last text."""
        place = item.place_after
        if place is None:
            return item
        start = self.first.starts[place.line - 1] + place.column - 1
        return replace(item, place_after=self._final(0, start))

    def _original(self, number: int, offset: int) -> Place:
        for round_ in reversed(self.rounds[:number]):
            offset = round_.offsets.backward(offset)
        place = self.first.place(offset)
        return self.converted.place_before(place) if self.converted else place

    def _final(self, number: int, offset: int) -> Place:
        for round_ in self.rounds[number:]:
            offset = round_.offsets.forward(offset)
        return self.last.place(offset)


def _shown_span(module: Module, rewrite: Rewrite) -> tuple[int, int]:
    """The span shown for an edit: its node, or only the first lines of a compound statement.

    It includes lines inserted just before or after the node: without them, the code would look
    unchanged.
    """
    start, end = module.span(rewrite.node)
    first = min([change.start for change in rewrite.replacements], default=start)
    last = max([change.end for change in rewrite.replacements], default=end)
    if isinstance(rewrite.node, ast.With | ast.For | ast.If | ast.FunctionDef | ast.ClassDef):
        return min(start, first), max(start, min(end, last))
    is_near = first >= start - _NEAR and last <= end + _NEAR
    return (min(start, first), max(end, last)) if is_near else (start, end)


def _excerpt(text: str) -> str:
    return text if len(text) <= _MAX_EXCERPT else f"{text[:_MAX_EXCERPT]}…"


def _unreadable_note(error: BaseException) -> Text:
    if isinstance(error, SyntaxError):
        return Text(
            en="neither Python 3 nor Python 2 that can be converted safely: "
            f"{error.msg} (line {error.lineno})",
            zh=f"既不是 Python 3，经安全转换后也不是 Python 2：{error.msg}（第 {error.lineno} 行）",
        )
    if isinstance(error, MemoryError):
        return Text(en="does not fit in memory", zh="内存不足，无法读取")
    return Text(
        en=f"too deeply nested to be read ({type(error).__name__})",
        zh=f"嵌套过深，无法读取（{type(error).__name__}）",
    )
