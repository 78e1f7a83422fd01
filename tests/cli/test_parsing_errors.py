"""Errors of the command line's form."""

from pathlib import Path

import pytest

from tests.cli.in_process import unchecked_end


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("port", "lint", "a", "b"), "jumar port lint takes one PATH; also given: 'b'."),
        (("port", "lint", "a", "[red]b"), "also given: '[red]b'."),
        (("precision", "compare", "a", "b", "c"), "takes 2 arguments: BEFORE, AFTER; also given"),
        (("recipes", "list", "a"), "jumar recipes list takes no arguments; also given: 'a'."),
        (("generate", "--to"), "--to requires a value: jumar generate --to VALUE"),
        (("port", "a", "--jobs"), "--jobs requires a value: jumar port --jobs VALUE"),
        (("port", "lint"), "PATH is missing: jumar port lint requires it."),
        (("export", "run"), "--to is missing: jumar export requires it."),
        (("port", "a", "--job", "2"), "Unknown option: --job. Did you mean --jobs?"),
    ],
)
def test_wrong_number_of_arguments_is_said_with_their_names(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = unchecked_end(*words, cwd=tmp_path)
    assert done.code == 2
    assert said in " ".join(done.err.replace("│", " ").split())
    assert not done.out
