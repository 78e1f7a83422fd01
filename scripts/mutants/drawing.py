"""Which defects are planted: a line drawn at random, and one of the changes that fit it."""

import ast
import io
import random
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names
from parso.python.tree import Keyword, Newline, PythonNode

ROOMS = (
    "training",
    "precision",
    "data",
    "weights",
    "tasks",
    "models",
    "profiling",
    "porting/rewriting",
    "porting/script",
)
_USED = re.compile(
    r"core/(ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Div|Mod_FloorDiv"
    r"|Pow_Mul|LShift_RShift|RShift_LShift|BitAnd_BitOr|BitOr_BitAnd)"
    r"|ReplaceComparisonOperator_(Eq_NotEq|NotEq_Eq|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Lt_Gt|Gt_Lt"
    r"|Is_IsNot|IsNot_Is)|ReplaceUnaryOperator_.*|AddNot|ReplaceTrueWithFalse|ReplaceFalseWithTrue"
    r"|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceBreakWithContinue|ReplaceContinueWithBreak"
    r"|NumberReplacer|RemoveDecorator|ZeroIterationForLoop)"
)
"""Of cosmic-ray's operators those that people could have written: `==` to `is` is hardly ever a
defect of a program, and `+` to `<<` fails wherever it is run."""


class DeleteStatement(Operator):
    """Replaces a call that stands alone, or `x += ...`, by `pass`."""

    def mutation_positions(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, node: Any
    ) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """The place of a statement that can go."""
        if node.type != "simple_stmt" or not isinstance(node.children[-1], Newline):
            return
        statement = node.children[0]
        calls = statement.type in ("atom_expr", "power") and statement.children[-1].type in (
            "trailer",
        )
        adds = statement.type == "expr_stmt" and statement.children[1].type == "annassign"
        changes = (
            statement.type == "expr_stmt"
            and not adds
            and getattr(statement.children[1], "value", "=") != "="
        )
        if calls or changes:
            yield statement.start_pos, statement.end_pos

    def mutate(self, node: Any, index: int) -> Any:  # noqa: ARG002
        """The statement without what it did."""
        statement = node.children[0]
        gone = Keyword("pass", statement.start_pos, prefix=statement.get_first_leaf().prefix)
        return PythonNode("simple_stmt", [gone, *node.children[1:]])

    @classmethod
    def examples(cls) -> Sequence[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """None: cosmic-ray's own tests use them."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A planted defect.

    Attributes:
        file: The file, from the checkout's root.
        line: The line that is changed, from 1.
        operator: The kind of change.
        before: That line, as it is.
        after: What stands in its place.
        text: The whole file with the defect.
    """

    file: str
    line: int
    operator: str
    before: str
    after: str
    text: str

    @property
    def room(self) -> str:
        """The room of the file."""
        inside = self.file.removeprefix("src/jumar/")
        return next(room for room in ROOMS if inside.startswith(f"{room}/"))


def draw(
    checkout: Path, seed: int, count: int, rooms: Sequence[str] = ROOMS, below: Sequence[str] = ()
) -> list[Mutant]:
    """Defects drawn by a seed, none twice.

    Args:
        checkout: The checkout.
        seed: Decides all of them, for a given state of the files.
        count: How many; fewer come back where the files have no more.
        rooms: Whose files, each as likely as it has lines of code.
        below: Only files whose path within `src/jumar/` begins with one of these, where given.

    Raises:
        ValueError: There is no such file.
    """
    numbers = random.Random(seed)
    files = [
        path
        for room in rooms
        for path in sorted((checkout / "src" / "jumar" / room).rglob("*.py"))
        if path.name != "__init__.py"
        and path.relative_to(checkout / "src" / "jumar").as_posix().startswith(tuple(below) or "")
    ]
    if not files:
        raise ValueError(f"no file of {', '.join(rooms)} begins with {' or '.join(below)}")
    lengths = [len(code_lines(path.read_text(encoding="utf-8"))) for path in files]
    drawn: dict[tuple[str, str], Mutant] = {}
    for _ in range(20 * count):
        if len(drawn) == count:
            break
        path = numbers.choices(files, lengths)[0]
        mutant = _mutant(path, path.relative_to(checkout).as_posix(), numbers)
        if mutant is not None:
            drawn.setdefault((mutant.file, mutant.text), mutant)
    return list(drawn.values())


def code_lines(text: str) -> set[int]:
    """The lines that hold code: no comments, docstrings or blanks."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    lines = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in skipped and token.string
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _mutant(path: Path, name: str, numbers: random.Random) -> Mutant | None:
    """One defect of a line of this file; None where the line has nothing to change."""
    text = path.read_text(encoding="utf-8")
    line = numbers.choice(sorted(code_lines(text)))
    nodes = list(ast_nodes(get_ast(text)))
    choices: list[tuple[str, str]] = []
    for operator_name, operator in _operators():
        # Occurrences are counted in the order in which the tree is walked.
        places = [begin for node in nodes for begin, _ in operator.mutation_positions(node)]
        for occurrence, begin in enumerate(places):
            if begin[0] == line:
                changed = mutate_code(text, operator, occurrence)
                if changed is not None and _runs_differently(text, changed):
                    choices.append((operator_name, changed))
    if not choices:
        return None
    # Not in proportion to how many replacements an operator has.
    kind = numbers.choice(sorted({operator_name for operator_name, _ in choices}))
    changed = numbers.choice([changed for name_, changed in choices if name_ == kind])
    return Mutant(
        file=name,
        line=line,
        operator=kind,
        before=text.splitlines()[line - 1].strip(),
        after=changed.splitlines()[line - 1].strip(),
        text=changed,
    )


def _operators() -> list[tuple[str, Any]]:
    names = [name for name in sorted(operator_names()) if _USED.fullmatch(name)]
    return [
        ("DeleteStatement", DeleteStatement()),
        *((name.removeprefix("core/").split("_")[0], get_operator(name)()) for name in names),
    ]


def _runs_differently(before: str, after: str) -> bool:
    """Whether more than annotations, which nothing evaluates on purpose, has changed."""
    try:
        return _without_annotations(before) != _without_annotations(after)
    except SyntaxError:
        return False


def _without_annotations(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)
