"""How classes and functions are declared, in the whole package: read from the source."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tests.sources import forget, parsed

PACKAGE = CHECKOUT / "src" / "jumar"
WRITTEN_FOR_OTHERS = PACKAGE / "porting" / "standin"
"""It has the signatures of the library that it stands for."""


def _words(text: str) -> list[str]:
    return text.split()


CHANGING = _words("""
    Block EntityCounts Entry ErrorLine Found Job Judge Lane Origin Reading Repeating Scope
    Setting Sighting Strips Table Trials Waits _Bucket _Child _Entry _Facts _Node _Origins
    _PartialOp _Placed _RewriterSettings _Running
""")
"""Dataclasses that gather something; all others are frozen."""
IN_ORDER = _words("""
    BasicWords Binding Block BytesFeature ChunkFacts Combination Content ConvolutionKernel
    DenseKernel DepthwiseKernel Encoded Entry Entry ErrorSheets EstimatorPlan Extent FieldRow
    Finding FloatFeature Frame Guess IntegerFeature Judge Packing Question RandomPosition
    Reading Row RuleIndex Scope Setting SourceText Span Table Unchanged View Vocabulary Waits
    _Blob _Facts _Layer _Leaf _Node _Origins _PartOpener _PartOpener _PartialOp _Requests
    _RewriterSettings _Round _Running _Side _Step _Work
""")
"""Few enough fields to be given in their order; all others are given by name."""
THEMSELVES = _words("""
    Binding BoxReader Detection DetectionPictures Encoded EntitySets ErrorSheets Exportable
    KernelReader KeyedSet LabelledPictures Packing Patches PreparedProfile PretrainingInstances
    RandomPosition ReadingSets Region Scope SentenceSets Source Step TextPictures TripletPatches
    Vocabulary Wave _Running
""")
"""They hold arrays or words by the thousand, and equal only themselves."""
MANY = _words("""
    AscendResult Call Compared Difference Entry Item Operand Overflow Replayed Row Statistics
    Value View _Blob _Facts _Leaf _Node _Running
""")
"""There are so many of them at a time that they have slots."""


@pytest.fixture(scope="module", autouse=True)
def _trees() -> Iterator[None]:
    yield
    forget()


def trees() -> dict[Path, ast.Module]:
    return {
        path: parsed(path)
        for path in sorted(PACKAGE.rglob("*.py"))
        if WRITTEN_FOR_OTHERS not in path.parents
    }


def classes() -> Iterator[ast.ClassDef]:
    for tree in trees().values():
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def dataclass_options() -> Iterator[tuple[str, dict[str, bool]]]:
    """Name and options of each dataclass."""
    for node in classes():
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            name = ast.unparse(call.func if call else decorator)
            if name.rpartition(".")[2] == "dataclass":
                words = call.keywords if call else []
                yield node.name, {str(word.arg): ast.literal_eval(word.value) for word in words}


def without(option: str) -> list[str]:
    return sorted(name for name, options in dataclass_options() if not options.get(option))


def test_dataclasses_are_frozen_except_accumulators() -> None:
    assert without("frozen") == CHANGING


def test_dataclass_fields_are_keyword_only_except_for_a_few() -> None:
    assert without("kw_only") == IN_ORDER


def test_dataclasses_are_compared_by_content_and_have_slots_as_listed() -> None:
    options = list(dataclass_options())
    assert sorted(name for name, each in options if each.get("eq") is False) == THEMSELVES
    assert sorted(name for name, each in options if each.get("slots")) == MANY


def test_arguments_may_be_keywords_except_in_commands_and_protocols() -> None:
    without_name = [
        node.name
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.posonlyargs
        if path.parent != PACKAGE / "cli"
    ]
    of_protocols = [
        method.name
        for node in classes()
        if "Protocol" in {ast.unparse(base).partition("[")[0] for base in node.bases}
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.args.posonlyargs
    ]
    assert sorted(without_name) == sorted(of_protocols) == ["__call__", "__call__", "map", "open"]


def test_method_without_a_body_is_abstract_in_an_abstract_class() -> None:
    open_methods = [
        f"{node.name}.{method.name}"
        for node in classes()
        if "ABC" in {ast.unparse(base) for base in node.bases}
        for method in node.body
        if isinstance(method, ast.FunctionDef)
        and all(_is_text(part) for part in method.body)
        and "abstractmethod" not in {ast.unparse(each) for each in method.decorator_list}
    ]
    assert open_methods == []


def _is_text(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
