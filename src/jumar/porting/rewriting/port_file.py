"""One script through all rules: the new text, and the list of edits and findings."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from jumar.porting.edits import Edit, FileReport, Finding, Kept, Place, Text
from jumar.porting.options import PortOptions
from jumar.porting.python2.conversion import Converted, to_python3, with_names_of_python3
from jumar.porting.rewriting.applying import Moved, applied, compatible, emptied_blocks, ordered
from jumar.porting.rewriting.changes import Change, Leave, Notice, Replacement, Rewrite
from jumar.porting.rewriting.concerned import may_concern
from jumar.porting.rewriting.emptied import empty_branches
from jumar.porting.rewriting.placing import addition, import_lines
from jumar.porting.rewriting.prelude import prelude
from jumar.porting.rewriting.registry import Rule, RuleIndex, rule_index
from jumar.porting.rewriting.view import View
from jumar.porting.script.module import Module, parsed
from jumar.porting.script.project import Project
from jumar.porting.script.source import Lines, SourceText

_Item = TypeVar("_Item", Edit, Finding)
_REFERENCES = (ast.Name, ast.Attribute)
_MAX_PASSES = 6
_MAX_EXCERPT = 1500
_NEAR = 200
"""Maximum distance from a node, in characters, of an insertion that is shown with it."""
_IMPORT_RULE = "npu-import"
_IMPORT_REASON = Text(
    en="what the new code uses is imported by name: a star import would hide the script's own "
    "names, such as util, session and backend",
    zh="按名称导入新代码所用的内容：星号导入会遮蔽脚本自身的 util、session、backend 等名称",
)
_TORCH_NPU_REASON = Text(
    en="importing torch_npu registers the device 'npu' and torch.npu; a plain import, so that a "
    "machine without it fails at once",
    zh="导入 torch_npu 会注册 npu 设备与 torch.npu；直接导入，缺少该包时立即报错",
)
_TORCH_NPU_SOURCE = "quick start of Ascend/pytorch (torch_npu)"
_FUNCTION_REASON = Text(
    en="the session options of this port, in one place",
    zh="本次移植的会话选项集中于此处",
)
_UNSETTLED = Text(
    en="the rules do not converge on this script, which is left unchanged ({rules})",
    zh="规则在该脚本上无法收敛，脚本保持原样（{rules}）",
)
_UNSETTLED_ADVICE = Text(
    en="port it by hand, and please report it: this is a bug in jumar",
    zh="请手工移植，并反馈此问题：这是 jumar 的缺陷",
)
_SOURCE = "npu_init.py of Ascend/tensorflow, which has no __all__"


@dataclass(frozen=True)
class _Pass:
    """One round of all rules over a text."""

    module: Module
    rewrites: list[tuple[Rule, Rewrite]]
    notices: list[tuple[Rule, Notice]]
    leaves: list[tuple[Rule, Leave]]


@dataclass(frozen=True)
class _Applied:
    """A round whose rewrites have been applied."""

    result: _Pass
    added: list[tuple[Replacement, str]]
    moved: Moved
    text: str
    tree: ast.Module


def port_file(
    source: SourceText,
    path: str,
    project: Project,
    options: PortOptions,
    *,
    whatever_words: bool = False,
) -> FileReport:
    """Rewrite one script for the NPU.

    The rules run over the text until none has anything left to change, so that porting the result
    again changes nothing.

    Args:
        source: The script.
        path: Its path within the tree, with forward slashes.
        project: The tree, for imports of its own modules.
        options: The port's options.
        whatever_words: Whether to port it even if no word in it has to do with the NPU.
    """
    if not whatever_words and not may_concern(source, options):
        return FileReport(path=path, status="unchanged")
    try:
        module = project.parsed(source.text, path)
        converted = with_names_of_python3(
            source.text, module.tree, lambda name: project.find(name, path) is not None
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        module = None
        converted = to_python3(source.text) if isinstance(error, SyntaxError) else None
        if converted is None:
            return FileReport(path=path, status="unreadable", note=_why(error))
    if module is None or converted is not None:
        assert converted is not None
        module = Module(converted.text, path, project)
    rounds = _rounds(module, options)
    last_result = rounds[-1].result
    if last_result.rewrites:
        return FileReport(path=path, status="unchanged", findings=(_unsettled(last_result),))
    journey = _Journey(rounds, converted)
    edits = journey.edits()
    findings = tuple(sorted(journey.findings(), key=lambda item: (item.place, item.rule)))
    final = rounds[-1].text
    mark = "\ufeff" if source.bom else ""
    return FileReport(
        path=path,
        status="unchanged" if final == source.text else "ported",
        edits=tuple(sorted(edits, key=lambda item: (item.place, item.rule))),
        findings=findings,
        kept=journey.kept(),
        before="" if final == source.text else f"{mark}{source.text}",
        after="" if final == source.text else f"{mark}{final}",
    )


def _rounds(module: Module, options: PortOptions) -> list[_Applied]:
    """Rounds of all rules; the last one has rewrites only if the rules do not converge."""
    rounds: list[_Applied] = []
    own_empty = empty_branches(module.tree)
    for _ in range(_MAX_PASSES):
        view = View(module, options, own_empty)
        result = _run_rules(view, rule_index(options.source, options.minimal))
        applied_pass = _apply(view, result)
        if applied_pass is None:
            rounds.append(_Applied(result, [], Moved([]), module.text, module.tree))
            break
        rounds.append(applied_pass)
        module = Module(applied_pass.text, module.path, module.project, applied_pass.tree)
    return rounds


def _unsettled(last: _Pass) -> Finding:
    """The finding for a script that the rules would change forever: it is left unchanged."""
    rule, rewrite = last.rewrites[0]
    names = ", ".join(sorted({last_rule.id for last_rule, _ in last.rewrites}))
    return Finding(
        rule=rule.id,
        place=last.module.lines.place(last.module.span(rewrite.node)[0]),
        place_after=None,
        code=_excerpt(last.module.source(rewrite.node)),
        reason=_UNSETTLED.filled(rules=names),
        todo=_UNSETTLED_ADVICE,
        severity="blocking",
        confidence="certain",
        source=rule.source,
    )


def _run_rules(view: View, index: RuleIndex) -> _Pass:
    result = _Pass(view.module, [], [], [])
    for rule in index.of_module:
        _sort(rule, rule.check(view.module.tree, view), result)
    by_node = index.by_node
    for node in view.module.scopes.nodes:
        for rule in by_node.get(node.__class__, ()):
            _sort(rule, rule.check(node, view), result)
        if isinstance(node, ast.Call) and index.has_calls:
            name = view.kinds.called(node)
            if name is not None:
                for rule in index.for_call(name):
                    _sort(rule, rule.check(node, view), result)
        elif isinstance(node, _REFERENCES) and index.by_reference:
            name = view.module.name_of(node)
            for rule in index.by_reference.get(name or "", ()):
                _sort(rule, rule.check(node, view), result)
    return result


def _sort(rule: Rule, changes: Iterator[Change], result: _Pass) -> None:
    for change in changes:
        if isinstance(change, Rewrite):
            result.rewrites.append((rule, change))
        elif isinstance(change, Notice):
            result.notices.append((rule, change))
        else:
            result.leaves.append((rule, change))


def _apply(view: View, result: _Pass) -> _Applied | None:
    """The text with the rewrites applied; None if there are none, or none that can be kept."""
    accepted = compatible([rewrite for _, rewrite in result.rewrites])
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
        tree = _parsed(text)
        if tree is not None:
            kept_rewrites = [
                (rule, change) for rule, change in result.rewrites if id(change) in accepted_ids
            ]
            return _Applied(
                replace(result, rewrites=kept_rewrites), additions, Moved(changes), text, tree
            )
        # Never produce what Python cannot parse: drop the last rewrite, then the one before it.
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


class _Journey:
    """Edits and findings of several rounds, placed in the first and the last text."""

    def __init__(self, rounds: list[_Applied], converted: Converted | None) -> None:
        self.rounds = rounds
        self.converted = converted
        self.first = rounds[0].result.module.lines
        self.last = Lines(rounds[-1].text)

    def edits(self) -> list[Edit]:
        edits = [self._settled(edit) for edit in self.converted.edits] if self.converted else []
        for number, applied_pass in enumerate(self.rounds):
            edits += [
                self._edit(number, rule, rewrite) for rule, rewrite in applied_pass.result.rewrites
            ]
            for replacement, text in applied_pass.added:
                of_torch = "import torch_npu" in text
                reason = _FUNCTION_REASON
                if text.startswith(("from ", "import ")):
                    reason = _TORCH_NPU_REASON if of_torch else _IMPORT_REASON
                start = applied_pass.moved.forward(replacement.start) - len(replacement.text)
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
        """Findings of all rounds: a remaining decision is only visible before its rewrite."""
        findings: dict[tuple[str, Place, str], Finding] = {}
        for unsettled in self.converted.findings if self.converted else ():
            finding = self._settled(unsettled)
            findings.setdefault((finding.rule, finding.place, finding.reason.en), finding)
        for number, applied_pass in enumerate(self.rounds):
            for rule, notice in applied_pass.result.notices:
                finding = self._finding(number, rule, notice)
                findings.setdefault((finding.rule, finding.place, finding.reason.en), finding)
        return list(findings.values())

    def kept(self) -> tuple[Kept, ...]:
        """Places kept in the first round: later rounds see the port's own code."""
        module = self.rounds[0].result.module
        return tuple(
            Kept(
                rule=rule.id,
                place=self._original(0, module.span(leave.node)[0]),
                code=_excerpt(module.source(leave.node)),
                reason=leave.reason,
            )
            for rule, leave in self.rounds[0].result.leaves
        )

    def _edit(self, number: int, rule: Rule, rewrite: Rewrite) -> Edit:
        applied_pass = self.rounds[number]
        start, end = _shown_span(applied_pass.result.module, rewrite)
        is_inserted = any(change.start == change.end == start for change in rewrite.replacements)
        new_start = applied_pass.moved.forward(start, ahead=is_inserted)
        before = applied_pass.result.module.text[start:end]
        after = applied_pass.text[new_start : applied_pass.moved.forward(end, end=True)]
        start += len(before) - len(before.lstrip())
        new_start += len(after) - len(after.lstrip())
        final = self._final(number + 1, new_start) if after.strip() else None
        if after.strip() == "pass" and not self._is_there("pass", final):
            # A later round has removed the branch that was left with nothing in it.
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

    def _is_there(self, text: str, place: Place | None) -> bool:
        if place is None:
            return False
        lines = self.rounds[-1].text.split("\n")
        return lines[place.line - 1][place.column - 1 :].startswith(text)

    def _finding(self, number: int, rule: Rule, notice: Notice) -> Finding:
        module = self.rounds[number].result.module
        start, _ = module.span(notice.node)
        return Finding(
            rule=rule.id,
            place=self._original(number, start),
            place_after=self._final(number, start),
            code=_excerpt(module.source(notice.node)),
            reason=notice.reason,
            todo=notice.todo,
            severity=notice.severity,
            confidence=notice.confidence,
            source=rule.source,
        )

    def _settled(self, item: _Item) -> _Item:
        """An edit or finding of the Python 2 conversion, with its position in the last text."""
        place = item.place_after
        if place is None:
            return item
        start = self.first.starts[place.line - 1] + place.column - 1
        return replace(item, place_after=self._final(0, start))

    def _original(self, number: int, offset: int) -> Place:
        for applied_pass in reversed(self.rounds[:number]):
            offset = applied_pass.moved.backward(offset)
        place = self.first.place(offset)
        return self.converted.place_before(place) if self.converted else place

    def _final(self, number: int, offset: int) -> Place:
        for applied_pass in self.rounds[number:]:
            offset = applied_pass.moved.forward(offset)
        return self.last.place(offset)


def _shown_span(module: Module, rewrite: Rewrite) -> tuple[int, int]:
    """The span that shows an edit: its node, or only the first lines of a compound statement.

    Lines that are inserted just before or after it belong to it: without them it would look
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


def _parsed(text: str) -> ast.Module | None:
    try:
        return parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _why(error: BaseException) -> Text:
    if isinstance(error, SyntaxError):
        location = f"line {error.lineno}"
        return Text(
            en=f"neither Python 3 nor, after the safe changes, Python 2: {error.msg} ({location})",
            zh=f"既不是 Python 3，经安全转换后也不是 Python 2：{error.msg}（第 {error.lineno} 行）",
        )
    if isinstance(error, MemoryError):
        return Text(en="does not fit in memory", zh="内存不足，无法读取")
    return Text(
        en=f"too deeply nested to be read ({type(error).__name__})",
        zh=f"嵌套过深，无法读取（{type(error).__name__}）",
    )
