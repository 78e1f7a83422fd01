"""Replacements for common edits of Python source: of calls, arguments and statements."""

import ast
from typing import NamedTuple

from jumar.porting.rewriting.changes import Replacement
from jumar.porting.script.module import Module


class Slot(NamedTuple):
    """The span of an argument in a call: with its keyword and parentheses, without commas."""

    node: ast.expr | ast.keyword
    start: int
    end: int
    comma: int
    """Offset of the comma after it, or -1."""


def replace(module: Module, node: ast.AST, text: str) -> Replacement:
    """Replace an expression with other text."""
    start, end = module.span(node)
    return Replacement(start=start, end=end, text=text)


def wrap(module: Module, node: ast.AST, before: str, after: str) -> tuple[Replacement, Replacement]:
    """Insert text before and after an expression, regardless of other edits within it."""
    start, end = module.span(node)
    width = end - start
    return (
        Replacement(start=start, end=start, text=before, side="open", width=width),
        Replacement(start=end, end=end, text=after, side="close", width=width),
    )


def delete(module: Module, statement: ast.stmt) -> Replacement:
    """Delete a statement: its lines are removed, or become `pass` if a statement is required."""
    start, end = module.span(statement)
    if isinstance(statement, ast.FunctionDef | ast.ClassDef) and statement.decorator_list:
        start = min(start, module.span(statement.decorator_list[0])[0] - 1)
    if _alone_in_block(module, statement):
        return Replacement(start=start, end=end, text="pass")
    line_start, line_end = module.lines.line_start(start), module.lines.line_end(end)
    before, after = module.text[line_start:start], module.text[end:line_end]
    if before.strip() == "" and after.split("#", 1)[0].strip() == "":
        return Replacement(start=line_start, end=_after_gap(module, line_start, line_end), text="")
    return Replacement(start=start, end=end, text="pass")


def _after_gap(module: Module, start: int, end: int) -> int:
    """The end of removed lines, including a blank line below if there is also one above."""
    below = module.text[end : module.lines.line_end(end)]
    above = module.text[module.lines.line_start(start - 1) : start] if start else ""
    if below.endswith(("\n", "\r")) and above and not above.strip() and not below.strip():
        return end + len(below)
    return end


def insert_before(module: Module, statement: ast.stmt, text: str) -> Replacement:
    r"""Insert lines before a statement, with its indentation; `text` has `\n` between lines."""
    start, _ = module.span(statement)
    line_start = module.lines.line_start(start)
    indent, newline = module.lines.indent(start), module.lines.newline
    if module.text[line_start:start].strip():
        # `if a: b`: the block is on one line.
        one_line = "; ".join(text.split("\n"))
        return Replacement(start=start, end=start, text=f"{one_line}; ")
    lines = "".join(f"{indent}{line}{newline}" if line else newline for line in text.split("\n"))
    return Replacement(start=line_start, end=line_start, text=lines)


def insert_after(module: Module, statement: ast.stmt, text: str) -> Replacement:
    r"""Insert lines after a statement, with its indentation; `text` has `\n` between lines."""
    start, end = module.span(statement)
    indent, newline = module.lines.indent(start), module.lines.newline
    if module.text[module.lines.line_start(start) : start].strip():
        one_line = "; ".join(text.split("\n"))
        return Replacement(start=end, end=end, text=f"; {one_line}")
    line_end = module.lines.line_end(end)
    lines = "".join(f"{indent}{line}{newline}" if line else newline for line in text.split("\n"))
    if line_end == len(module.text) and not module.text.endswith(("\n", "\r")):
        # The file does not end with a newline; keep it that way.
        text, width = newline + lines[: -len(newline)], line_end - start + 1
        return Replacement(start=line_end, end=line_end, text=text, side="close", width=width)
    return Replacement(start=line_end, end=line_end, text=lines, side="close")


def slots(module: Module, call: ast.Call) -> list[Slot]:
    """The arguments of a call in the order of the text."""
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    arguments.sort(key=lambda argument: module.span(argument)[0])
    position = open_parenthesis(module, call) + 1
    slots_of_call: list[Slot] = []
    for index, argument in enumerate(arguments):
        start = _skip_space(module.text, position)
        node_start, end = module.span(argument)
        if node_start < start:
            # A lone generator without its own parentheses: its span includes those of the call.
            slots_of_call.append(Slot(argument, start, end - 1, -1))
            break
        depth = _depth(module.text[start:node_start])
        end, comma = _end_of_slot(module.text, end, depth)
        slots_of_call.append(Slot(argument, start, end, comma))
        position = comma + 1 if comma >= 0 else end
        if comma < 0 and index + 1 < len(arguments):
            raise AssertionError(f"no comma after argument {index} of {module.source(call)!r}")
    return slots_of_call


def open_parenthesis(module: Module, call: ast.Call) -> int:
    """Offset of the parenthesis that opens the arguments."""
    position = module.span(call.func)[1]
    while True:
        position = _skip_space(module.text, position)
        if module.text[position] == "(":
            return position
        position += 1


def add_argument(
    module: Module,
    call: ast.Call,
    *texts: str,
    without: "frozenset[ast.expr | ast.keyword]" = frozenset(),
) -> Replacement:
    """Add arguments after the last one, or before it if it is a `**mapping`.

    If the last argument is on its own line, so is each new one.

    Args:
        module: The module of the call.
        call: The call.
        texts: The new arguments, as `name=value`.
        without: Arguments that `remove_arguments` removes in the same edit.
    """
    present = slots(module, call)
    remaining = [slot for slot in present if slot.node not in without]
    if not remaining:
        last_end = present[-1].end if present else open_parenthesis(module, call) + 1
        position = present[-1].comma + 1 if present and present[-1].comma >= 0 else last_end
        return Replacement(start=position, end=position, text=", ".join(texts), side="close")
    last = remaining[-1]
    if isinstance(last.node, ast.keyword) and last.node.arg is None:
        text = "".join(f"{text}, " for text in texts)
        return Replacement(start=last.start, end=last.start, text=text)
    line = module.lines.line_start(last.start)
    own_line = not module.text[line : last.start].strip() and line > module.span(call)[0]
    gap = module.lines.newline + module.text[line : last.start] if own_line else " "
    new_text = "".join(f",{gap}{text}" for text in texts)
    # Another edit may wrap the last argument: insert after its closing text.
    start, end = module.span(call)
    return Replacement(start=last.end, end=last.end, text=new_text, side="close", width=end - start)


def remove_arguments(
    module: Module, call: ast.Call, removed: "set[ast.expr | ast.keyword]"
) -> tuple[Replacement, ...]:
    """Remove arguments from a call; the others keep their position and comments."""
    present = slots(module, call)
    replacements: list[Replacement] = []
    last = max(
        (index for index, slot in enumerate(present) if slot.node not in removed), default=-1
    )
    for index, slot in enumerate(present):
        if slot.node not in removed:
            continue
        if index < last or last < 0:
            end = _skip_blanks(module.text, slot.comma + 1) if slot.comma >= 0 else slot.end
            replacements.append(Replacement(start=slot.start, end=end, text=""))
        else:
            # Trailing arguments are removed together with the comma before them.
            start = present[index - 1].end
            replacements.append(Replacement(start=start, end=slot.end, text=""))
    return tuple(replacements)


def argument(call: ast.Call, name: str, position: int = -1) -> ast.expr | None:
    """The value passed for a parameter, by keyword or by position; None if it is omitted."""
    by_name = keyword(call, name)
    if by_name is not None:
        return by_name.value
    has_no_star = not any(isinstance(value, ast.Starred) for value in call.args)
    if 0 <= position < len(call.args) and has_no_star:
        return call.args[position]
    return None


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """The keyword argument with a name, or None."""
    return next((passed for passed in call.keywords if passed.arg == name), None)


def is_open(call: ast.Call) -> bool:
    """Whether `*args` or `**kwargs` pass arguments that are not visible here."""
    return any(isinstance(value, ast.Starred) for value in call.args) or any(
        passed.arg is None for passed in call.keywords
    )


def literal(node: ast.expr | None) -> object:
    """The value of a literal expression; None for anything else."""
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _alone_in_block(module: Module, statement: ast.stmt) -> bool:
    parent = module.parent(statement)
    if parent is None or isinstance(parent, ast.Module):
        return False
    return len(module.block(statement)) <= 1


def _skip_space(text: str, position: int) -> int:
    """The offset of the next character outside white space, comments and line continuations."""
    while position < len(text):
        if text[position] in " \t\f\r\n\\":
            position += 1
        elif text[position] == "#":
            while position < len(text) and text[position] not in "\r\n":
                position += 1
        else:
            break
    return position


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t":
        position += 1
    return position


def _depth(text: str) -> int:
    """The number of parentheses left open in a text without strings."""
    depth, position = 0, 0
    while position < len(text):
        position = _skip_space(text, position)
        if position < len(text):
            depth += {"(": 1, ")": -1}.get(text[position], 0)
            position += 1
    return depth


def _end_of_slot(text: str, position: int, depth: int) -> tuple[int, int]:
    """The end of an argument including its closing parentheses, and the comma after it or -1."""
    end = position
    while True:
        position = _skip_space(text, position)
        if position >= len(text):
            return end, -1
        if text[position] == ")" and depth > 0:
            depth -= 1
            end = position + 1
        elif text[position] == ",":
            return end, position
        else:
            return end, -1
        position += 1
