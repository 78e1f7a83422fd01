"""`modify_mixlist`: a JSON file in CANN's format that changes the op lists.

    {"black-list": {"to-add": ["SoftmaxV2", "aten::exp"]}, "white-list": {"to-remove": ["Add"]}}

Names are CANN op types or aten operators. As in CANN's graph engine, a name can be removed from one
list, added to one list, or added to one list and removed from another. An addition alone determines
the list; a removal without an addition makes the op gray. Unlike in CANN, which never checks names,
an unknown name is rejected: one in seventeen published lists has an entry without effect.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

import torch

from jumar.ground.errors import UserError, nearest
from jumar.ground.paths import read_text
from jumar.precision.json_places import ITEM, JsonError, Leaf, read_leaves
from jumar.precision.modes import find_mode
from jumar.precision.oplist import (
    NO_LOW_KERNEL,
    ListName,
    default_list,
    default_lists,
    listed_ops,
)
from jumar.precision.optypes import (
    WITHOUT_EFFECT,
    OpGroup,
    groups_by_type,
    op_groups,
    types_of,
)
from jumar.precision.overloads import can_cast, find_overload
from jumar.precision.shipped_mixlists import find_mixlist, shipped_mixlists

_LISTS: dict[str, ListName] = {"black-list": "black", "white-list": "white", "gray-list": "gray"}
_CHANGES = ("to-add", "to-remove")
_SAFEST: tuple[ListName, ...] = ("black", "gray", "white")

_NAMESPACES = re.compile(r"^(?:(?:aten|torch|tf|keras|layers|nn|functional|F|raw_ops)(?:::|\.))+")

SHARED_BY_KIND = ("matmul", "convolution", "_convolution", "_convolution.deprecated")
"""Ops that only dispatch to other ops with separate kernels. If the op types that share such an op
are on different lists, it becomes gray, so that the lists of the other ops decide."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding about a mixlist."""

    severity: Literal["error", "warning"]
    line: int
    """Line of the file, counted from 1; 0 if the finding concerns the whole file."""
    what: str
    todo: str = ""

    def __str__(self) -> str:
        prefix = f"line {self.line}: " if self.line else ""
        return f"{self.severity}: {prefix}{self.what}{f' ({self.todo})' if self.todo else ''}"


@dataclass(kw_only=True)
class _Entry:
    """All changes of one name in a file."""

    name: str
    line: int
    added: set[ListName] = field(default_factory=set[ListName])
    removed: set[ListName] = field(default_factory=set[ListName])
    ops: tuple[str, ...] = ()
    group: OpGroup | None = None


def lint_mixlist(path: str | Path, mode: str) -> list[Finding]:
    """Return errors and warnings about a mixlist, errors first, then by line.

    Args:
        path: The JSON file, or the name of a shipped list.
        mode: The precision mode with which it will be used; a mode that ignores lists is an error.

    Raises:
        UserError: The file cannot be read, or the mode is unknown.
    """
    findings = _examine(find_mixlist(path))[1]
    precision_mode = find_mode(mode)
    if not precision_mode.uses_lists:
        findings.append(
            Finding(
                severity="error",
                line=0,
                what=f"the mode '{precision_mode.name}' ignores op lists",
                todo="use allow_mix_precision or allow_mix_precision_bf16",
            )
        )
    return sorted(findings, key=lambda finding: (finding.severity != "error", finding.line))


def load_mixlist(path: str | Path) -> dict[str, ListName]:
    """Return the list of every op with the changes of a mixlist applied.

    Args:
        path: The JSON file, or the name of a shipped list.

    Raises:
        UserError: The file cannot be read, or `lint_mixlist` finds an error in it.
    """
    lists, findings = _examine(find_mixlist(path))
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        first, other_errors = errors[0], errors[1:]
        more_errors = [f"line {finding.line}: {finding.what}" for finding in other_errors[:9]]
        if len(other_errors) > len(more_errors):
            more_errors.append(f"and {len(other_errors) - len(more_errors)} more")
        raise UserError(
            first.what,
            where=f"{path}, line {first.line}" if first.line else str(path),
            todo="\n  ".join(filter(None, [first.todo, *more_errors])),
        )
    return lists


def _examine(path: Path) -> tuple[dict[str, ListName], list[Finding]]:
    try:
        text = read_text(path)
    except UserError as error:
        shipped = f"Lists shipped with the package: {', '.join(shipped_mixlists())}."
        raise UserError(
            f"the mixlist cannot be read: {error.what}",
            where=str(path),
            todo=f"{error.todo} {shipped}".strip(),
        ) from None
    lists = default_lists()
    try:
        entries, findings = _entries(read_leaves(text))
    except JsonError as error:
        return lists, [Finding(severity="error", line=error.line, what=error.what, todo=error.todo)]
    for entry in entries:
        entry_findings = _resolve(entry)
        # The lists of an unknown op do not matter.
        if all(finding.severity == "warning" for finding in entry_findings):
            findings.extend(_check_combination(entry))
        findings.extend(entry_findings)
    if not any(finding.severity == "error" for finding in findings):
        findings.extend(_apply(entries, lists))
    return lists, findings


def _entries(leaves: Iterable[Leaf]) -> tuple[list[_Entry], list[Finding]]:
    """Return the entries of a file by name, and structural errors."""
    entries: dict[str, _Entry] = {}
    findings: list[Finding] = []
    for leaf in leaves:
        error = _structural_error(leaf)
        if error is not None:
            # An unknown key has one leaf per name, but is a single error.
            if all(error.what != finding.what for finding in findings):
                findings.append(error)
            continue
        if leaf.path[2:] != (ITEM,):
            continue
        name = cast(str, leaf.value)
        list_name, change = _LISTS[leaf.path[0]], leaf.path[1]
        entry = entries.setdefault(name, _Entry(name=name, line=leaf.line))
        (entry.added if change == "to-add" else entry.removed).add(list_name)
    return list(entries.values()), findings


def _structural_error(leaf: Leaf) -> Finding | None:
    message = todo = ""
    path = leaf.path
    if path[:1] in ((), (ITEM,)) and leaf.value != {}:
        message = "the file must contain one object"
        todo = 'for instance {"black-list": {"to-add": ["SoftmaxV2"]}}'
    elif path and path[0] not in _LISTS:
        message, todo = _unknown_key(path[0], _LISTS)
    elif path[1:2] == (ITEM,) or (len(path) == 1 and leaf.value != {}):
        message = f"'{path[0]}' must be an object with to-add or to-remove"
    elif len(path) > 1 and path[1] not in _CHANGES:
        message, todo = _unknown_key(path[1], _CHANGES)
    elif (len(path) == 2 and leaf.value != []) or (len(path) > 2 and path[2] != ITEM):
        message = f"'{path[1]}' must be an array of op types"
    elif len(path) > 3 or (len(path) == 3 and not isinstance(leaf.value, str)):
        message = f"'{path[1]}' contains {json.dumps(leaf.value)}, which is not the name of an op"
    if not message:
        return None
    return Finding(severity="error", line=leaf.line, what=message, todo=todo)


def _unknown_key(key: str, allowed: Iterable[str]) -> tuple[str, str]:
    close = nearest(key, allowed)
    return f"unknown key '{key}'", f"did you mean '{close}'?" if close else ", ".join(allowed)


def _check_combination(entry: _Entry) -> list[Finding]:
    """Check CANN's rule: one addition, one removal, or one of each for different lists."""
    name, todo = entry.name, "keep one of them"
    if len(entry.added) > 1:
        message = f"'{name}' is added to more than one list: {_listed(entry.added)}"
    elif entry.added & entry.removed:
        message = f"'{name}' is added to and removed from the {_listed(entry.added)} list"
    elif len(entry.removed) > 1:
        message = f"'{name}' is removed from more than one list: {_listed(entry.removed)}"
    elif entry.removed == {"gray"} and not entry.added:
        message = f"'{name}' is removed from the gray list, but not added to another"
        todo = "add it to the white or the black list"
    else:
        return []
    return [_error(entry, message, todo)]


def _resolve(entry: _Entry) -> list[Finding]:
    """Find the torch ops of an entry, and set its `ops` and `group`."""
    group = groups_by_type().get(entry.name)
    if group is None:
        entry.ops = _aten_ops(entry.name)
        if entry.ops:
            return []
        if _is_aten(entry.name.removeprefix("aten::")):
            message = (
                f"'{entry.name}' cannot be on a list: it writes in place, returns a view, or runs "
                "in the backward pass"
            )
            return [_warn(entry, message)]
        close = _nearest_names(entry.name)
        todo = f"did you mean {close}?" if close else "see docs/precision.md for the known names"
        return [_error(entry, f"unknown op '{entry.name}'", todo)]
    if entry.name in group.backward:
        forward = ", ".join(group.types)
        return [
            _warn(
                entry,
                f"'{entry.name}' has no effect: it runs in the backward pass, in the dtypes of the "
                f"forward pass{f'; list {forward} instead' if group.ops else ''}",
            )
        ]
    if not group.ops:
        return [_warn(entry, f"'{entry.name}' has no effect: {WITHOUT_EFFECT[group.kind]}")]
    entry.group = group
    entry.ops = tuple(op for op in group.ops if op in listed_ops())
    return []


def _apply(entries: Sequence[_Entry], lists: dict[str, ListName]) -> list[Finding]:
    """Apply the entries to the lists; warn about op types that torch cannot distinguish."""
    findings: list[Finding] = []
    changes: dict[str, list[tuple[_Entry, ListName]]] = {}
    for entry in entries:
        if not entry.ops:
            continue
        target = next(iter(entry.added), None)
        if target is None:
            findings.extend(_remove(entry, changes))
        else:
            for op in entry.ops:
                changes.setdefault(op, []).append((entry, target))
            findings.extend(_remarks(entry, target))
    clashes: dict[str, tuple[list[tuple[_Entry, ListName]], list[str]]] = {}
    for op, requested in changes.items():
        targets = {target for _, target in requested}
        by_type = all(entry.group for entry, _ in requested)
        if op in SHARED_BY_KIND and by_type:
            lists[op] = _shared(op, {id(entry.group): target for entry, target in requested})
            continue
        lists[op] = next(name for name in _SAFEST if name in targets)
        if len(targets) > 1:
            requests = ", ".join(f"'{entry.name}' ({target})" for entry, target in requested)
            clashes.setdefault(requests, (requested, []))[1].append(op)
    findings.extend(_contradiction(requests, *clash) for requests, clash in clashes.items())
    return findings


def _remove(entry: _Entry, changes: dict[str, list[tuple[_Entry, ListName]]]) -> list[Finding]:
    (source,) = entry.removed
    leaving = [op for op in entry.ops if default_list(op) == source]
    for op in leaving:
        changes.setdefault(op, []).append((entry, "gray"))
    if not leaving:
        current = _listed({default_list(op) for op in entry.ops})
        return [_warn(entry, f"'{entry.name}' has no effect: it is {current}, not {source}")]
    return list(_remarks(entry, "gray"))


def _remarks(entry: _Entry, target: ListName) -> Iterator[Finding]:
    if entry.group is not None and entry.group.shares:
        note = f": {entry.group.note}" if entry.group.note else ""
        yield _warn(
            entry,
            f"torch cannot distinguish '{entry.name}' from {', '.join(entry.group.shares)}, "
            f"so they change together{note}",
        )
    if target == "white":
        missing = [op for op in entry.ops if op in NO_LOW_KERNEL]
        if missing:
            yield _warn(
                entry,
                f"'{entry.name}' stays in fp32: no low-precision kernel for {', '.join(missing)}",
            )
    if target == "gray" and all(map(_is_composite, entry.ops)):
        yield _warn(
            entry,
            f"'{entry.name}' consists of other ops in torch, which keep their lists if it is gray",
        )
    if target == "gray" and not entry.removed:
        yield _warn(
            entry,
            f"'{entry.name}' becomes gray, unlike in CANN, which ignores additions to the gray "
            "list",
        )


def _shared(op: str, requested: Mapping[int, ListName]) -> ListName:
    """Return the list of an op shared by several op types: theirs if they agree, else gray."""
    owners = [group for group in op_groups() if op in group.ops]
    states: set[ListName] = {requested.get(id(group), default_list(op)) for group in owners}
    return states.pop() if len(states) == 1 else "gray"


def _contradiction(
    requests: str, requested: list[tuple[_Entry, ListName]], ops: list[str]
) -> Finding:
    last = requested[-1][0]
    groups = [id(entry.group) for entry, _ in requested if entry.group]
    if len(set(groups)) == len(requested):
        safest = next(name for name in _SAFEST if name in {target for _, target in requested})
        message = (
            f"torch has only {', '.join(ops)} for {requests}: the safer list, {safest}, is used"
        )
        return _warn(last, message)
    message = f"{requests} put the same torch op on different lists: {', '.join(ops)}"
    return _error(last, message, "keep one of them")


def _aten_ops(name: str) -> tuple[str, ...]:
    """Return the listable overloads of `softmax`, `softmax.int` or `aten::softmax.int`."""
    bare = name.removeprefix("aten::")
    packet_name, dot, _ = bare.partition(".")
    if not _is_aten(packet_name):
        return ()
    if dot:
        candidates = [bare]
    else:
        packet = getattr(torch.ops.aten, packet_name)
        candidates = [
            packet_name if overload == "default" else f"{packet_name}.{overload}"
            for overload in packet.overloads()
        ]
    overloads = ((op, find_overload(op)) for op in candidates)
    return tuple(op for op, overload in overloads if overload is not None and can_cast(overload))


def _is_aten(name: str) -> bool:
    bare = name.partition(".")[0]
    # torch passes the name to C++, which rejects lone surrogates.
    packet = getattr(torch.ops.aten, bare, None) if bare.isascii() else None
    return isinstance(packet, torch._ops.OpOverloadPacket)


def _is_composite(op: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(
        f"aten::{op}", "CompositeImplicitAutograd"
    )


def _nearest_names(name: str) -> str:
    """Return the closest CANN op type and the corresponding aten operator; empty if none is close.

    Both are returned because `nn.Conv2d` may mean either, and CANN reads only op types.
    """
    types = {_folded(op_name): op_name for op_name in groups_by_type()}
    packets = {_folded(op.partition(".")[0]): op.partition(".")[0] for op in listed_ops()}
    folded = _folded(_NAMESPACES.sub("", name))
    # Published lists contain `matmulv2` for MatMulV2, although its spelling is closer to `matmul`.
    close = (
        folded if folded in types or folded in packets else nearest(folded, {**types, **packets})
    )
    kind, packet = types.get(close, ""), packets.get(close, "")
    if kind and not packet:
        ops = [op for op in groups_by_type()[kind].ops if op in listed_ops()]
        packet = ops[0].partition(".")[0] if ops else ""
    if packet and not kind:
        overloads = (op for op in listed_ops() if op.partition(".")[0] == packet)
        kind = next((types_of(op)[0] for op in overloads if types_of(op)), "")
    suggestions = [(kind, "CANN op type"), (packet, "aten operator")]
    return " or ".join(f"the {noun} '{op_name}'" for op_name, noun in suggestions if op_name)


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def _listed(names: Iterable[str]) -> str:
    return " and ".join(sorted(names))


def _error(entry: _Entry, message: str, todo: str) -> Finding:
    return Finding(severity="error", line=entry.line, what=message, todo=todo)


def _warn(entry: _Entry, message: str) -> Finding:
    return Finding(severity="warning", line=entry.line, what=message)
