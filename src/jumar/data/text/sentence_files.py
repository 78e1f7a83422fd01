"""Reads sentences and pairs of sentences with a label, from TSV and JSON lines with named columns.

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
from jumar.ground.errors import UserError, did_you_mean
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
_RENAMED = {"contradictory": "contradiction"}
"""Label names in XNLI's training file that differ from its evaluation files."""
UNDECIDED = "-"
"""The label in OCNLI and XNLI of samples on which annotators disagree."""
ABSENT = "none"


@dataclass(frozen=True, kw_only=True)
class SentenceData(DividedData, LabelledData):
    """Where to find labelled sentences, and in which columns."""

    text_a: str = setting("", "Column of the text; empty: the first known one.")
    text_b: str = setting(
        "", "Column of the second text of a pair; empty: the first known one, none: ignore it."
    )
    label: str = setting("", "Column of the label; empty: the first known one.")
    columns: tuple[str, ...] = setting((), "Column names of TSV files without a header, in order.")
    language: str = setting("zh", "Rows with another value in the language column are left out.")
    sampling: str = setting(
        "natural",
        "natural uses every training text once per epoch, balanced every label equally often.",
        choices=("natural", "balanced"),
    )

    def check(self) -> None:
        """Check labels and divisions.

        Raises:
            UserError: A label is listed twice, or divisions contradict each other.
        """
        super().check()
        is_divided(self, self.eval_path)


class Sentence(NamedTuple):
    """A text or a pair of texts, its label, which may be empty, and its location for messages."""

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
    """Read the sentences of a file, except rows of other languages or without an agreed label.

    Args:
        path: A TSV file, or JSON lines if its suffix is .json or .jsonl.
        data: The columns.
        skipping: Counter of malformed rows.
        labelled: Whether a label is required.

    Raises:
        UserError: The file cannot be read, has no rows, lacks the columns, or has more malformed
            rows than are tolerated.
    """
    columns: _Columns | None = None
    is_empty = True
    rows = _json_rows(path, skipping) if path.suffix in _JSON else _tsv_rows(path, data, skipping)
    for number, row in rows:
        is_empty = False
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
                label=_RENAMED.get(label, label),
                where=where,
            )
    if is_empty:
        raise UserError("there are no rows after the header", where=str(path))


def read_plain(path: Path) -> list[Sentence]:
    """Read a file with one text per line, without labels; a tab separates the texts of a pair.

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
    # Quotes are text, since the originals read these files without quoting.
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
                    todo="Expected: one object per line.",
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
                todo=f"Specify it: data.{field}=..., or data.columns=... for a file without a "
                "header.",
            )
    return _Columns(first, second, label)


def _column(
    names: Sequence[str], requested: str, usual_names: Sequence[str], field: str, where: str
) -> str:
    if requested and requested not in names:
        raise UserError(
            f"there is no column '{requested}' (data.{field})",
            where=where,
            todo=f"{did_you_mean(requested, names)}Existing columns: "
            f"{', '.join(map(excerpt, names))}.",
        )
    return requested or next((name for name in usual_names if name in names), "")
