"""The optimizers that one variable holds one after the other, and the first use of each."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from jumar.porting.rewriting import View
from jumar.porting.script.expressions import argument_values
from jumar.porting.script.nodes import walk


@dataclass(frozen=True, kw_only=True)
class Life:
    """What a variable holds from a new value until the next new one.

    Args:
        values: The values assigned in it: alternatives, and wrappers around what it holds already.
        uses: Where the variable is read in it.
    """

    values: tuple[ast.expr, ...]
    uses: tuple[ast.expr, ...]


def lives(
    values: Sequence[ast.expr], uses: Sequence[ast.expr], home: ast.AST, view: View
) -> list[Life]:
    """Split the values and uses of a variable where it is given a new, unrelated value.

    A wrapper for one optimizer must not count for another one that had the name before. If the
    order is not that of the text, because several functions use the variable, nothing is split.

    Args:
        values: What is assigned to the variable.
        uses: Where it is read.
        home: The function, or the module, that contains all of them.
        view: The module.
    """
    module = view.module
    values = sorted(values, key=lambda value: module.span(value)[0])
    whole = [Life(values=tuple(values), uses=tuple(uses))]
    functions = {module.function(node) or module.tree for node in (*values, *uses)}
    if functions != {home}:
        return whole
    starts: list[int] = []
    earlier: list[ast.stmt] = []
    for value in values:
        statement = module.statement(value)
        start, _ = module.span(value)
        since = starts[-1] if starts else 0
        was_used = any(since <= module.span(use)[0] < start for use in uses)
        if (
            earlier
            and was_used
            and not mentions(value, uses)
            and all(is_followed(before, statement, home, view) for before in earlier)
        ):
            starts.append(start)
            earlier = []
        earlier.append(statement)
    bounds = [0, *starts, len(module.text) + 1]
    return [
        Life(
            values=tuple(one for one in values if first <= module.span(one)[0] < end),
            uses=tuple(one for one in uses if first <= module.span(one)[0] < end),
        )
        for first, end in pairwise(bounds)
    ]


def mentions(value: ast.expr, uses: Sequence[ast.expr]) -> bool:
    """Whether a value is made from what the variable already holds."""
    return any(node is use for node in walk(value) for use in uses)


def is_followed(before: ast.stmt, statement: ast.stmt, home: ast.AST, view: View) -> bool:
    """Whether a later statement also runs whenever an earlier one did."""
    innermost = blocks(statement, home, view)[:1]
    return bool(innermost) and innermost[0] in blocks(before, home, view)


def may_follow(before: ast.stmt, statement: ast.stmt, home: ast.AST, view: View) -> bool:
    """Whether a statement is later in the text and not in another branch of the same `if`."""
    if view.module.span(statement)[0] < view.module.span(before)[1]:
        return False
    parts = dict(blocks(before, home, view))
    return all(
        parts.get(owner, part) == part
        for owner, part in blocks(statement, home, view)
        if isinstance(owner, ast.If)
    )


def is_conditional(call: ast.Call, view: View) -> bool:
    """Whether an optimizer is wrapped under its own name, but not on every path of the script."""
    module = view.module
    statement = module.statement(call)
    if not isinstance(statement, ast.Assign):
        return False
    targets = {target.id for target in statement.targets if isinstance(target, ast.Name)}
    names = [
        value
        for value in argument_values(call)
        if isinstance(value, ast.Name) and value.id in targets
    ]
    if names and isinstance(module.parent(call), ast.IfExp):
        return True
    home = module.function(call) or module.tree
    return any(
        binding.value is not None
        and (module.function(binding.value) or module.tree) is home
        and module.statement(binding.value) is not statement
        and may_follow(module.statement(binding.value), statement, home, view)
        and not is_followed(module.statement(binding.value), statement, home, view)
        for name in names
        for binding in module.bindings(name)
    )


def first_use(
    home: ast.AST, values: Sequence[ast.expr], uses: Sequence[ast.expr], view: View
) -> ast.stmt | None:
    """The statement that first uses an optimizer, if a single line before it is sufficient.

    This is the case if it follows every creation of the optimizer, is not in a loop, and is in the
    block of all other uses or in one around it.
    """
    if not uses or not values:
        return None
    creations = [view.module.statement(call) for call in values]
    creation_end = max(view.module.span(statement)[1] for statement in creations)
    common = blocks(creations[0], home, view)
    for statement in creations[1:]:
        other_blocks = blocks(statement, home, view)
        common = [block for block in common if block in other_blocks]
    if not common:
        return None
    # The innermost block that contains all creations, and the first use in it.
    owner, part = common[0]
    for statement in getattr(owner, part):
        start, end = view.module.span(statement)
        if start >= creation_end and any(start <= view.module.span(use)[0] < end for use in uses):
            is_first = all(view.module.span(use)[0] >= start for use in uses)
            loops = any(isinstance(enclosing, ast.For | ast.While) for enclosing, _ in common)
            return statement if is_first and not loops else None
    return None


def blocks(statement: ast.stmt, home: ast.AST, view: View) -> list[tuple[ast.AST, str]]:
    """The blocks around a statement within its function, the innermost first."""
    found: list[tuple[ast.AST, str]] = []
    current: ast.AST = statement
    while current is not home:
        parent = view.module.parent(current)
        if parent is None:
            break
        for part in ("body", "orelse", "finalbody"):
            block = getattr(parent, part, None)
            if isinstance(block, list) and current in block:
                found.append((parent, part))
        current = parent
    return found
