"""LibCST against Python's own parser with our scopes and names, on the longest scripts of a tree.

    pip install libcst
    python benchmarks/script_parsers.py tensor2tensor

Both give every node's place and what every name means, which is what rewriting needs. Python's
parser and ours are timed as one, and take turns with LibCST's steps; printed are medians.
"""

import argparse
import ast
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import libcst
from libcst.metadata import (
    ByteSpanPositionProvider,
    MetadataWrapper,
    QualifiedNameProvider,
    ScopeProvider,
)

from jumar.porting.script.module import Module
from jumar.porting.script.project import Project


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    longest = sorted(arguments.tree.rglob("*.py"), key=lambda path: -path.stat().st_size)[
        : arguments.files
    ]
    texts = {path: path.read_text(encoding="utf-8") for path in longest}
    lines = sum(text.count("\n") for text in texts.values())
    print(f"{len(texts)} scripts, {lines} lines, medians of {arguments.rounds} rounds")
    steps: dict[str, Callable[[], None]] = {
        "ours: parser, scopes, every name": lambda: _ours(arguments.tree, texts),
        "LibCST: parser": lambda: _libcst(texts, ()),
        "LibCST: parser, places": lambda: _libcst(texts, (ByteSpanPositionProvider,)),
        "LibCST: parser, places, scopes, names": lambda: _libcst(
            texts, (ByteSpanPositionProvider, ScopeProvider, QualifiedNameProvider)
        ),
    }
    took: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(arguments.rounds):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            took[name].append(time.perf_counter() - start)
    ours = statistics.median(took["ours: parser, scopes, every name"])
    for name, seconds in took.items():
        median = statistics.median(seconds)
        print(f"{name:40} {median:6.2f} s  {median / ours:5.1f}x")


def _ours(tree: Path, texts: dict[Path, str]) -> None:
    project = Project(tree)
    for path, text in texts.items():
        module = Module(text, path.relative_to(tree).as_posix(), project)
        for node in module.scopes.nodes:
            if isinstance(node, ast.Name | ast.Attribute):
                module.name_of(node)


def _libcst(texts: dict[Path, str], providers: tuple[type, ...]) -> None:
    for text in texts.values():
        wrapper = MetadataWrapper(libcst.parse_module(text), unsafe_skip_copy=True)
        for provider in providers:
            wrapper.resolve(provider)


if __name__ == "__main__":
    main()
