"""Sentences and pairs of sentences with a label, from TSV and JSON lines with named columns.

The layouts of the originals' data are recognised by their columns: ChnSentiCorp (`label`,
`text_a`), LCQMC (`text_a`, `text_b`, `label`), XNLI for training (`premise`, `hypo`, `label`) and
for evaluation (`language`, `gold_label`, ... `sentence1`, `sentence2`), OCNLI as JSON lines.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from jumar.data.loading.division import DividedData, is_divided
from jumar.data.text.labelled_parts import LabelledData
from jumar.data.text.numbered_lines import Skipping, excerpt, line_of, numbered_lines
from jumar.ground.errors import UserError, nearest
from jumar.ground.json_text import parse_json
from jumar.settings import setting

SUFFIXES = (".tsv", ".txt", ".jsonl", ".json")
_JSON = (".jsonl", ".json")
PLAIN = ".txt"
"""Suffix of files of new texts without columns."""
_FIRST = ("text_a", "sentence1", "premise", "sentence", "text", "review", "question1", "query")
_SECOND = ("text_b", "sentence2", "hypothesis", "hypo", "question2")
_LABEL = ("label", "gold_label")
_LANGUAGE = "language"
_SAME = {"contradictory": "contradiction"}
"""XNLI's training file names a label differently than its evaluation files."""
UNDECIDED = "-"
"""The label of OCNLI and XNLI on which annotators did not agree."""
ABSENT = "none"


@dataclass(frozen=True, kw_only=True)
class SentenceData(DividedData, LabelledData):
    """Where sentences with labels are, and in which columns."""

    text_a: str = setting("", "column of the text; empty: the first known one")
    text_b: str = setting(
        "", "column of the second text of a pair; empty: the first known one, none: ignore it"
    )
    label: str = setting("", "column of the label; empty: the first known one")
    columns: tuple[str, ...] = setting((), "column names of TSV files without a header, in order")
    language: str = setting("zh", "rows in other languages are left out, by the language column")
    sampling: str = setting(
        "natural",
        "natural takes every training text once per epoch, balanced every label equally often",
        choices=("natural", "balanced"),
    )

    def check(self) -> None:
        """Rules across fields.

        Raises:
            UserError: A label is listed twice, or divisions contradict each other.
        """
        super().check()
        is_divided(self, self.eval_path)


class Sentence(NamedTuple):
    """A text or a pair of texts, the label (may be empty), and the position for messages."""

    first: str
    second: str | None
    label: str
    where: str


class _Columns(NamedTuple):
    first: str
    second: str
    label: str


def read_sentences(
    path: Path, data: SentenceData, skipping: Skipping, *, labelled: bool = True
) -> Iterator[Sentence]:
    """The sentences of a file; rows of another language or without an agreed label are left out.

    Args:
        path: A TSV file, or JSON lines if it ends in .json or .jsonl.
        data: The columns.
        skipping: Counts malformed rows.
        labelled: Whether a label is needed.

    Raises:
        UserError: The file cannot be read, has no rows, has none of the columns, or more malformed
            rows than are tolerated.
    """
    columns: _Columns | None = None
    empty = True
    rows = _json_rows(path, skipping) if path.suffix in _JSON else _tsv_rows(path, data, skipping)
    for number, row in rows:
        empty = False
        if columns is None:
            columns = _chosen(list(row), data, line_of(path, number), labelled=labelled)
        if row.get(_LANGUAGE, data.language) != data.language:
            continue
        where = line_of(path, number)
        if missing_columns := [name for name in columns if name and row.get(name) is None]:
            skipping.fault(UserError(f"has no '{missing_columns[0]}'", where=where))
            continue
        label = str(row[columns.label]) if columns.label else ""
        if label != UNDECIDED:
            yield Sentence(
                first=str(row[columns.first]),
                second=str(row[columns.second]) if columns.second else None,
                label=_SAME.get(label, label),
                where=where,
            )
    if empty:
        raise UserError("there are no rows after the header", where=str(path))


def read_plain(path: Path) -> list[Sentence]:
    """The texts of a file with one text per line, without labels; a tab separates those of a pair.

    Raises:
        UserError: The file cannot be read.
    """
    sentences: list[Sentence] = []
    for number, line in numbered_lines(path):
        if line.strip():
            first, tab, second = line.partition("\t")
            sentences.append(Sentence(first, second if tab else None, "", line_of(path, number)))
    return sentences


def _tsv_rows(
    path: Path, data: SentenceData, skipping: Skipping
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    # Quotes are text, as in the originals, which read these files without quoting.
    header: Sequence[str] = data.columns
    for number, line in numbered_lines(path):
        cells = line.split("\t")
        if not header:
            header = [cell.strip() for cell in cells]
        elif not line.strip():
            continue
        elif len(cells) != len(header):
            skipping.fault(
                UserError(
                    f"has {len(cells)} columns instead of {len(header)}: {excerpt(line)}",
                    where=line_of(path, number),
                    todo=f"Columns, separated by tabs: {', '.join(map(excerpt, header))}.",
                )
            )
        else:
            yield number, dict(zip(header, cells, strict=True))


def _json_rows(path: Path, skipping: Skipping) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            skipping.fault(UserError(f"is not JSON: {error}", where=line_of(path, number)))
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            skipping.fault(
                UserError(
                    "is not a JSON object",
                    where=line_of(path, number),
                    todo="Expected: one per line.",
                )
            )


def _chosen(names: Sequence[str], data: SentenceData, where: str, *, labelled: bool) -> _Columns:
    first = _column(names, data.text_a, _FIRST, "text_a", where)
    second = "" if data.text_b == ABSENT else _column(names, data.text_b, _SECOND, "text_b", where)
    label = _column(names, data.label, _LABEL, "label", where) if labelled else ""
    for name, field in ((first, "text_a"), (label, "label")):
        if not name and (labelled or field != "label"):
            raise UserError(
                f"none of the columns is known as {field}: {', '.join(map(excerpt, names))}",
                where=where,
                todo=f"Give it: data.{field}=..., or data.columns=... for a file without a header.",
            )
    return _Columns(first, second, label)


def _column(
    names: Sequence[str], requested: str, usual_names: Sequence[str], field: str, where: str
) -> str:
    if requested and requested not in names:
        suggestion = nearest(requested, names)
        hint = f"Did you mean '{suggestion}'? " if suggestion else ""
        raise UserError(
            f"there is no column '{requested}' (data.{field})",
            where=where,
            todo=f"{hint}There are: {', '.join(map(excerpt, names))}.",
        )
    return requested or next((name for name in usual_names if name in names), "")
