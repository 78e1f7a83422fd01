"""Rewrites of Python 2 statements and literals, found with the Python 2 grammar."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import fissix
from fissix.pgen2 import pgen
from fissix.pgen2.driver import Driver
from fissix.pgen2.parse import ParseError
from fissix.pgen2.tokenize import TokenError
from fissix.pytree import convert

from jumar.porting.python2.rewrites import Change, Rewrite

Node = Any
"""A node or leaf of fissix, which is not typed; nodes have a list of children, leaves a value."""

FUTURE = re.compile(r"^from\s+__future__\s+import\s*(\([^)]*\)|[^\n]*)", re.MULTILINE)


class _NotSafe(Exception):
    """A construct that cannot be rewritten with certainty."""


@cache
def _grammar() -> Any:
    """The grammar, read from its text file.

    `fissix.pygram` would cache it as a pickle in the user's home: loading a pickle can run
    arbitrary code, and writing it fails if the home is read-only.
    """
    return pgen.generate_grammar(str(Path(fissix.__file__).with_name("Grammar.txt")))


@cache
def _driver(print_statement: bool) -> tuple[Any, dict[int, str]]:
    grammar = _grammar().copy()
    if not print_statement:
        del grammar.keywords["print"]
    return Driver(grammar, convert=convert), grammar.number2symbol


def candidate_rewrites(text: str) -> Iterator[Sequence[Rewrite]]:
    """Yield ways to rewrite a Python 2 source, the likeliest first; the caller checks the result.

    Args:
        text: The source, with its original line endings.
    """
    # This parser treats a lone carriage return, which ends a line, as white space.
    if re.search("\r(?!\n)", text):
        return
    has_print_function = any("print_function" in match[1] for match in FUTURE.finditer(text))
    for print_statement in (not has_print_function, has_print_function):
        driver, symbols = _driver(print_statement)
        try:
            # The parser requires a final newline.
            tree: Node = driver.parse_string(text if text.endswith("\n") else text + "\n")
        except (ParseError, TokenError, IndentationError):
            continue
        except (RecursionError, MemoryError):
            return
        source = _Source(text, symbols)
        try:
            rewrites = list(_rewrites(tree, source, print_statement))
        except (_NotSafe, RecursionError):
            return
        yield rewrites
        yield [*rewrites, *_without_tabs(tree, source)]
        # With the other meaning of print, `print >>file, x` would parse as a tuple.
        return


class _Source:
    """The positions of a tree's nodes in its text."""

    def __init__(self, text: str, symbols: dict[int, str]) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._symbols = symbols

    def kind(self, node: Node) -> str:
        return self._symbols.get(node.type, "")

    def start(self, node: Node) -> int:
        first = next(node.leaves())
        return self.starts[first.lineno - 1] + first.column

    def end(self, node: Node) -> int:
        *_, last = (leaf for leaf in node.leaves() if leaf.value)
        return self.starts[last.lineno - 1] + last.column + len(last.value)

    def text_of(self, node: Node) -> str:
        return self.text[self.start(node) : self.end(node)]

    def replacement_between(self, left: Node, right: Node, text: str) -> Change:
        """New text for the span between two nodes."""
        return Change(start=self.end(left), end=self.start(right), text=text)

    def insertion_after(self, node: Node, text: str) -> Change:
        end = self.end(node)
        return Change(start=end, end=end, text=text)

    def replacement(self, node: Node, text: str) -> Change:
        return Change(start=self.start(node), end=self.end(node), text=text)

    def is_tuple(self, node: Node) -> bool:
        """Whether a node is a tuple in parentheses."""
        if not self.in_parentheses(node):
            return False
        inner = node.children[1]
        if len(node.children) == 2:
            return True
        return self.kind(inner) == "testlist_gexp" and any(
            not child.children and child.value == "," for child in inner.children
        )

    def in_parentheses(self, node: Node) -> bool:
        return self.kind(node) == "atom" and node.children[0].value == "("


def _rewrites(tree: Node, source: _Source, print_statement: bool) -> Iterator[Rewrite]:
    for node in tree.pre_order():
        if node.children:
            write = _STATEMENTS.get(source.kind(node))
            rewrite = write(node, source) if write else None
        else:
            rewrite = _leaf(node, source, print_statement)
        if rewrite:
            rule, changes = rewrite
            yield Rewrite(
                rule=rule, start=source.start(node), end=source.end(node), changes=tuple(changes)
            )


_Found = tuple[str, list[Change]] | None


def _leaf(leaf: Node, source: _Source, print_statement: bool) -> _Found:
    value: str = leaf.value
    if value == "<>":
        return "python2-ne", [source.replacement(leaf, "!=")]
    number = re.fullmatch(r"(0[xXbBoO]\w+?|\d+)([lL]?)", value)
    if number:
        digits = number[1]
        if re.fullmatch("0[0-7]+", digits) and digits.strip("0"):
            digits = f"0o{digits.lstrip('0')}"
        return ("python2-number", [source.replacement(leaf, digits)]) if digits != value else None
    if re.match("[uU][rR]['\"]", value):
        # Python 2 interprets these escapes even in raw strings; Python 3 does not.
        if re.search(r"\\[uU]", value):
            raise _NotSafe
        start = source.start(leaf)
        return "python2-string", [Change(start=start, end=start + 1, text="")]
    if value == "print" and source.kind(leaf.parent) != "print_stmt":
        if print_statement:
            return "python2-print", [source.insertion_after(leaf, "()")]
        if re.match(r"\s*>>", source.text[source.end(leaf) :][:80]):
            raise _NotSafe
    return None


def _print(node: Node, source: _Source) -> _Found:
    keyword, *rest = node.children
    end = ""
    if rest[0].children == [] and rest[0].value == ">>":
        target = rest[1]
        if any(_rewrites(target, source, True)):
            raise _NotSafe
        end = f"file={source.text_of(target)}"
        first = rest[1:]
        rest = rest[3:]
    else:
        first = rest
    last = node.children[-1]
    trailing = len(rest) > 1 and not last.children and last.value == ","
    is_single = len(rest) == 1 and not end and source.in_parentheses(rest[0])
    if is_single and not source.is_tuple(rest[0]):
        return None
    if not rest:
        # `print >>file` prints an empty line.
        opening = source.replacement_between(keyword, first[0], "(file=")
        return "python2-print", [opening, source.insertion_after(first[0], ")")]
    arguments = rest[:-1] if trailing else rest
    options = [*(["end=' '"] if trailing else []), *([end] if end else [])]
    closing = "".join(f", {option}" for option in options) + ")"
    return "python2-print", [
        source.replacement_between(keyword, arguments[0], "("),
        Change(start=source.end(arguments[-1]), end=source.end(last), text=closing),
    ]


def _except(node: Node, source: _Source) -> _Found:
    if len(node.children) != 4 or source.text_of(node.children[2]) != ",":
        return None
    _, caught, _, target = node.children
    if not target.children and target.value.isidentifier():
        return "python2-except", [source.replacement_between(caught, target, " as ")]
    if not re.fullmatch(r"[\[(][\w\s,]+[\])]", source.text_of(target)):
        raise _NotSafe
    name = "error"
    while re.search(rf"\b{name}\b", source.text):
        name += "_"
    body = node.parent.children[node.parent.children.index(node) + 2]
    statement = next(child for child in body.children if child.children or child.value.strip())
    if source.kind(body) == "suite":
        start = source.start(statement)
        line = source.text.rfind("\n", 0, start) + 1
        indent = source.text[line:start]
        newline = "\r\n" if source.text[:line].endswith("\r\n") else "\n"
        separator = newline + indent
    else:
        start, separator = source.start(body), "; "
    assign = f"{source.text_of(target)} = {name}.args{separator}"
    return "python2-except", [
        Change(start=source.end(caught), end=source.end(target), text=f" as {name}"),
        Change(start=start, end=start, text=assign),
    ]


def _raise(node: Node, source: _Source) -> _Found:
    if len(node.children) < 4 or source.text_of(node.children[2]) != ",":
        return None
    _, kind, _, value, *trace = node.children
    if source.in_parentheses(kind) or re.match("['\"]", source.text_of(kind).lstrip("uUrRbB")):
        raise _NotSafe
    if source.text_of(value) == "None":
        # A caught object is raised again unchanged; a class is called without arguments.
        parentheses = "()" if source.text_of(kind).rpartition(".")[2][:1].isupper() else ""
        changes = [Change(start=source.end(kind), end=source.end(value), text=parentheses)]
    elif source.in_parentheses(value):
        changes = [source.replacement_between(kind, value, "")]
    else:
        changes = [source.replacement_between(kind, value, "("), source.insertion_after(value, ")")]
    if trace:
        opening = source.replacement_between(value, trace[1], ".with_traceback(")
        closing = changes.pop() if changes[-1].start == opening.start else None
        if closing:
            opening = replace(opening, text=closing.text + opening.text)
        elif changes[-1].end == opening.start and source.text_of(value) == "None":
            previous = changes.pop()
            opening = Change(
                start=previous.start, end=opening.end, text=previous.text + ".with_traceback("
            )
        changes += [opening, source.insertion_after(trace[1], ")")]
    return "python2-raise", changes


def _exec(node: Node, source: _Source) -> _Found:
    keyword, code, *operands = node.children
    if not operands and source.in_parentheses(code):
        # Python 2 also accepts code and its namespaces in parentheses.
        return None
    changes = [source.replacement_between(keyword, code, "(")]
    previous = code
    for operand in operands[1::2]:
        changes.append(source.replacement_between(previous, operand, ", "))
        previous = operand
    return "python2-exec", [*changes, source.insertion_after(previous, ")")]


def _backquotes(node: Node, source: _Source) -> _Found:
    first, inner, last = node.children[0], node.children[1], node.children[-1]
    if first.children or first.value != "`":
        return None
    several = source.kind(inner) == "testlist1"
    return "python2-repr", [
        source.replacement(first, "repr((" if several else "repr("),
        source.replacement(last, "))" if several else ")"),
    ]


_STATEMENTS: dict[str, Callable[[Node, _Source], _Found]] = {
    "print_stmt": _print,
    "except_clause": _except,
    "raise_stmt": _raise,
    "exec_stmt": _exec,
    "atom": _backquotes,
}


def _without_tabs(tree: Node, source: _Source) -> Iterator[Rewrite]:
    """Replace tabs in indentation by spaces; multi-line strings are unchanged."""
    changes: list[Change] = []
    last_line = 0
    for leaf in tree.leaves():
        if not leaf.value.strip() or leaf.lineno == last_line:
            continue
        last_line = leaf.lineno
        start = source.starts[leaf.lineno - 1]
        indent = source.text[start : start + leaf.column]
        if "\t" in indent and not indent.strip():
            changes.append(Change(start=start, end=start + len(indent), text=indent.expandtabs(8)))
    if changes:
        yield Rewrite(
            rule="python2-tabs",
            start=changes[0].start,
            end=changes[0].end,
            changes=tuple(changes),
        )
