"""Check a data set, or the data of a recipe: `jumar data check`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from jumar.data.checking.findings import Finding, PartItems, findings_of
from jumar.data.checking.kinds import Kind
from jumar.data.checking.opening import CheckedData, open_parts
from jumar.data.checking.scanning import scanned
from jumar.data.images.image_set import PlainImageData
from jumar.data.images.picture_set import PictureData
from jumar.data.images.sources import is_registered
from jumar.data.loading.loader_settings import LoaderSettings
from jumar.data.polygons.detection_data import DetectionData
from jumar.data.speech.keyword_data import KeywordData
from jumar.data.text.entity_set import EntityData
from jumar.data.text.reading_set import ReadingData
from jumar.data.text.sentence_files import SentenceData
from jumar.ground.errors import UserError, nearest
from jumar.ground.paths import exists, expanded, missing
from jumar.recipes.registry import create_recipe, import_modules, list_recipes

_KINDS: Sequence[tuple[type[LoaderSettings], Kind]] = (
    (PlainImageData, "images"),
    (PictureData, "pictures"),
    (KeywordData, "clips"),
    (SentenceData, "sentences"),
    (EntityData, "tagged"),
    (ReadingData, "questions"),
    (DetectionData, "outlines"),
)
"""The kind of data that each class of data settings describes."""


@dataclass(frozen=True, kw_only=True)
class DataCheck:
    """The result of a check.

    Attributes:
        kind: Kind of data.
        sizes: Number of items in each part.
        findings: Findings, worst first.
        notices: Notices about the data as a whole, such as skipped files.
    """

    kind: Kind
    sizes: dict[str, int]
    findings: Sequence[Finding]
    notices: Sequence[str]


def data_to_check(
    name: str,
    *,
    eval_path: str = "",
    kind: Kind | None = None,
    assignments: Sequence[str] = (),
    imports: Sequence[str] = (),
) -> CheckedData:
    """Return the location and kind of the data at a path or of a recipe.

    Args:
        name: A path; if there is no such path, a recipe's name.
        eval_path: Path of the evaluation data, if it is elsewhere.
        kind: Kind of data; None to detect it, or to take it from the recipe.
        assignments: Changed settings of the recipe.
        imports: Modules that register recipes and sources.

    Raises:
        UserError: Neither a path nor a recipe, or settings for a path.
    """
    import_modules(imports)
    recipes = {row.name for row in list_recipes()}
    if exists(expanded(name)) or name not in recipes:
        if _is_neither_path_nor_source(name):
            close = nearest(name, recipes)
            raise missing(
                expanded(name),
                "file, folder or recipe",
                more=f"Did you mean the recipe '{close}'?" if close else "",
            )
        if assignments:
            raise UserError(
                f"'{name}' is a path, which has no settings", where="--set", todo="Give a recipe."
            )
        return CheckedData(path=name, eval_path=eval_path, kind=kind or "")
    recipe: Any = cast(Any, create_recipe(name, assignments))
    data: Any = recipe.data
    data_kind = kind or _kind_of_settings(data)
    if data_kind is None:
        raise UserError(
            f"the data of '{name}' is of a kind that cannot be checked",
            todo="Give the path of its images or texts instead.",
        )
    return CheckedData(
        kind=data_kind,
        path=data.path,
        eval_path=eval_path or data.eval_path,
        labels=data.labels if isinstance(data, DetectionData) else "",
        eval_labels=data.eval_labels if isinstance(data, DetectionData) else "",
        sentences=data if isinstance(data, SentenceData) else SentenceData(),
    )


def _is_neither_path_nor_source(name: str) -> bool:
    """Return whether a name that is no recipe cannot be data either, so that it is misspelt."""
    is_pattern = any(letter in name for letter in "/\\*?[")
    return not (is_pattern or is_registered(name) or exists(expanded(name)))


def _kind_of_settings(data: object) -> Kind | None:
    return next((kind for settings, kind in _KINDS if isinstance(data, settings)), None)


def check_data(
    data: CheckedData,
    *,
    workers: int,
    progress: Callable[[int, int], None],
) -> DataCheck:
    """Read and check all items.

    Args:
        data: The location and kind of the data.
        workers: Threads that read and decode.
        progress: Called with the number of items read and the total.

    Raises:
        UserError: The path cannot be used at all.
    """
    notices: list[str] = []
    kind, parts = open_parts(data, notices.append)
    total = sum(len(part.reader) for part in parts)
    read: list[PartItems] = []
    for part in parts:
        num_before = sum(len(entry.items) for entry in read)
        items = list(
            scanned(
                part.reader, workers=workers, done=lambda n, at=num_before: progress(at + n, total)
            )
        )
        read.append(PartItems(part=part, items=items))
    sizes = {part.name: len(part.reader) for part in parts}
    return DataCheck(kind=kind, sizes=sizes, findings=findings_of(read), notices=notices)
