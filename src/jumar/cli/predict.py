"""`jumar predict`."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jumar.cli.counts import check_count
from jumar.cli.options import (
    CheckpointOption,
    DeviceOption,
    JsonFlag,
    RunArgument,
    RunImportOption,
    SetOption,
)
from jumar.ground.errors import EXIT_CODE, UserError
from jumar.ground.text import print_aside, print_plain

if TYPE_CHECKING:
    from jumar.runs.open_trained import TrainedRequest
    from jumar.runs.predict import Guess, PredictRequest
    from jumar.runs.predict_text import TextRequest, TextResult

_JSON_HELP = (
    "Print one JSON object instead: `results` with the probabilities of all labels, and `errors` "
    "with the unreadable files; the exit code is 2 if there are more than --skip-corrupt."
)


def predict(
    run: RunArgument,
    /,
    *files: Path,
    checkpoint: CheckpointOption = "last",
    top: int = 3,
    json_: Annotated[JsonFlag, Parameter(help=_JSON_HELP)] = False,
    set_: SetOption = (),
    device: DeviceOption = "auto",
    skip_corrupt: int = 0,
    import_: RunImportOption = (),
    text: Annotated[tuple[str, ...], Parameter(metavar="TEXT")] = (),
    pair: Annotated[str | None, Parameter(metavar="TEXT")] = None,
    features: Annotated[str | None, Parameter(metavar="LAYERS", allow_leading_hyphen=True)] = None,
) -> int:
    """Classify audio clips by word, images by class or texts by label; find entities and answers.

    Clips may have any length and sample rate: those shorter than the training clips are padded with
    silence at the end; longer ones are scanned with a sliding window, and the window with the most
    probable word is printed. For texts, runs of `bert-classify` print labels, `bert-ner` entities
    with their positions, `bert-reading` answers to questions.

    Parameters
    ----------
    files
        WAV files for a keyword spotting run, images for an image classification run, or folders of
        them; for labels and entities a text file with one text per line, for labels also TSV or
        JSON lines with named columns; for answers JSON in SQuAD's format.
    top
        Number of predictions to print for each file or text.
    set_
        Change a field, for example `--set precision.mode=force_fp16`.
    skip_corrupt
        Skip up to this many unreadable files.
    text
        A text to use instead of a file.
    pair
        The second text of a pair, or the question about the text.
    features
        Instead of predictions, print the vectors of each word piece in these layers of a BERT or
        NEZHA, as JSON lines in the format of the original's extract_features.py: -1 for the last
        layer, -1,-2 for the last two. Also works for pre-training runs.
    """
    from jumar.runs.open_trained import TrainedRequest
    from jumar.runs.predict import PredictRequest
    from jumar.runs.predict import predict as predict_files
    from jumar.runs.predict_text import TextRequest, example_input, reads_text

    if not files and not text:
        example = "texts.txt" if features is not None else example_input(run, import_)
        raise UserError(
            "a file is missing",
            todo=f"For instance: jumar predict {shlex.quote(str(run))} {example}",
        )
    check_count(top, "--top")
    trained = TrainedRequest(
        run_dir=run, which=checkpoint, assignments=set_, imports=import_, device=device
    )
    if features is not None:
        return _print_features(trained, features, files, text, pair)
    if reads_text(run, import_):
        text_request = TextRequest(
            trained=trained, files=files, texts=text, pair=pair, skip_corrupt=skip_corrupt
        )
        return _print_texts(text_request, top=top, as_json=json_)
    if text:
        raise UserError(
            "the input of the run's network is not text", where="--text", todo="Give files."
        )
    request = PredictRequest(files=files, trained=trained, skip_corrupt=skip_corrupt)
    if json_:
        return _print_json(request)
    for prediction in predict_files(request, print_aside):
        start = "" if prediction.start_s is None else f" from {prediction.start_s:.2f} s"
        print_plain(f"{prediction.path}{start}: {_guesses_text(prediction.guesses[:top])}")
    return 0


def _guesses_text(guesses: Sequence["Guess"]) -> str:
    return "   ".join(f"{guess.label} {100 * guess.probability:.1f} %" for guess in guesses)


def _print_json(request: "PredictRequest") -> int:
    """Print all results and errors as one JSON object; return 2 if too many files fail."""
    from jumar.runs.predict import Prediction, answers

    results: list[dict[str, Any]] = []
    errors: list[dict[str, str]] = []
    for answer in answers(request, print_aside):
        if isinstance(answer, Prediction):
            probabilities = {guess.label: guess.probability for guess in answer.guesses}
            row = {"file": str(answer.path), "start_s": answer.start_s}
            results.append({**row, "probabilities": probabilities})
        else:
            errors.append({"file": str(answer.path), "error": answer.error.what})
    return _finish_json(results, errors, request.skip_corrupt)


def _finish_json(
    results: list[dict[str, Any]], errors: list[dict[str, str]], skip_corrupt: int
) -> int:
    print(json.dumps({"results": results, "errors": errors}, indent=1, ensure_ascii=False))
    if len(errors) > skip_corrupt:
        print_aside(
            f"jumar: {len(errors)} of {len(results) + len(errors)} files cannot be read; "
            "'errors' in the output lists them\n  To skip up to N such files: --skip-corrupt N"
        )
        return EXIT_CODE
    return 0


def _print_features(
    trained: "TrainedRequest",
    layers: str,
    files: tuple[Path, ...],
    texts: tuple[str, ...],
    pair: str | None,
) -> int:
    from jumar.runs.text_features import text_features

    try:
        numbers = [int(number) for number in layers.split(",")]
    except ValueError as error:
        raise UserError(
            f"'{layers}' is not a list of layers", where="--features", todo="For instance: -1,-2"
        ) from error
    for line in text_features(
        trained, numbers, files=files, texts=texts, pair=pair, say=print_aside
    ):
        print(line)
    return 0


def _print_texts(request: "TextRequest", *, top: int, as_json: bool) -> int:
    """Print all results as lines or as one JSON object."""
    from jumar.runs.predict import Unreadable
    from jumar.runs.predict_text import text_results

    results: list[dict[str, Any]] = []
    errors: list[dict[str, str]] = []
    for result in text_results(request, print_aside):
        if not isinstance(result, Unreadable):
            if as_json:
                results.append(_row(result))
            else:
                print_plain("\n".join(_lines(result, top)))
            continue
        if not as_json and len(errors) >= request.skip_corrupt:
            raise result.error
        errors.append({"file": str(result.path), "error": str(result.error)})
        if not as_json:
            print_aside(f"skipped: {result.error}")
    return _finish_json(results, errors, request.skip_corrupt) if as_json else 0


def _row(result: "TextResult") -> dict[str, Any]:
    """Return a result as JSON: probabilities by label, entities and answers as objects."""
    row = dict(vars(result))
    for name in ("entities", "answers"):
        if name in row:
            row[name] = [span._asdict() for span in row[name]]
    if "guesses" in row:
        row["probabilities"] = {guess.label: guess.probability for guess in row.pop("guesses")}
    return row


def _lines(result: "TextResult", top: int) -> list[str]:
    """Return a result as text: the input and the predictions for it."""
    from jumar.runs.predict_text import LabelledText, TaggedText

    if isinstance(result, LabelledText):
        pair = "" if result.pair is None else f" | {result.pair}"
        return [f"{_guesses_text(result.guesses[:top])}   {result.text}{pair}"]
    if isinstance(result, TaggedText):
        rows = [
            f"  {entity.begin:>4} {entity.end:>4}  {entity.kind}  {entity.text}  "
            f"{100 * entity.probability:.1f} %"
            for entity in result.entities
        ]
        return [result.text, *(rows or ["  no entities"])]
    rows = [
        f"  {answer.begin:>4} {answer.end:>4}  {100 * answer.probability:5.1f} %  {answer.text}"
        for answer in result.answers[:top]
    ]
    return [result.question, *(rows or ["  no answer"])]
