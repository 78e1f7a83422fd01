"""`jumar predict`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jumar.cli.train import ImportOption, SetOption
from jumar.errors import EXIT_CODE
from jumar.plain_text import print_plain

if TYPE_CHECKING:
    from jumar.recipes.predicting import PredictRequest


def predict(
    run: Path,
    /,
    *files: Path,
    checkpoint: str = "last",
    top: int = 3,
    json_: Annotated[bool, Parameter(name="--json", negative=())] = False,
    set_: SetOption = (),
    device: str = "auto",
    skip_corrupt: int = 0,
    import_: ImportOption = (),
) -> int:
    """Say which word a clip is, or which class a picture is of.

    Clips of any length and rate are taken: shorter ones than the training's are padded with
    silence behind them; a longer one is heard through a moving window, and what is printed is the
    window in which a word is most probable. Of a picture the number of the class is printed, since
    a run does not keep the names.

    Parameters
    ----------
    run
        The run directory.
    files
        WAV files for a run of keyword spotting, pictures for one of image classification; or
        folders, in which all such files are taken.
    checkpoint
        last, best, or a number of steps.
    top
        How many guesses are printed for each file.
    json_
        Print one JSON object instead: `results` with the probabilities of all labels, and
        `errors` with the files that cannot be read; exit code 2 where these are more than
        --skip-corrupt.
    set_
        Change a field, for instance `--set precision.mode=...`.
    device
        auto, cpu, cuda, npu, or one of several as in `npu:1`.
    skip_corrupt
        Leave out up to this many files that cannot be read.
    import_
        Import a module of your own first (those of the run are imported anyway).
    """
    from jumar.errors import UserError
    from jumar.recipes.predicting import PredictRequest
    from jumar.recipes.predicting import predict as predict_files
    from jumar.recipes.trained import TrainedRequest

    if not files:
        raise UserError("no file is given", todo=f"For instance: jumar predict {run} clip.wav")
    if top < 1:
        raise UserError(f"{top} guesses cannot be printed", where="--top", todo="1 or more.")
    trained = TrainedRequest(
        run_dir=run, which=checkpoint, assignments=set_, imports=import_, device=device
    )
    request = PredictRequest(files=files, trained=trained, skip_corrupt=skip_corrupt)
    if json_:
        return _print_json(request)
    for found in predict_files(request, _say):
        guesses = "   ".join(
            f"{guess.label} {100 * guess.probability:.1f} %" for guess in found.guesses[:top]
        )
        begin = "" if found.start_s is None else f" from {found.start_s:.2f} s"
        print_plain(f"{found.path}{begin}: {guesses}")
    return 0


def _print_json(request: "PredictRequest") -> int:
    """All answers and all errors as one JSON object; 2 where more files fail than are tolerated."""
    from jumar.recipes.predicting import Prediction, answers

    results: list[dict[str, Any]] = []
    errors: list[dict[str, str]] = []
    for found in answers(request, _say):
        if isinstance(found, Prediction):
            probabilities = {guess.label: guess.probability for guess in found.guesses}
            row = {"file": str(found.path), "start_s": found.start_s}
            results.append({**row, "probabilities": probabilities})
        else:
            errors.append({"file": str(found.path), "error": found.error.what})
    print(json.dumps({"results": results, "errors": errors}, indent=1, ensure_ascii=False))
    if len(errors) > request.skip_corrupt:
        _say(
            f"jumar: {len(errors)} of {len(results) + len(errors)} files cannot be read; 'errors' "
            "of the output names them\n  To leave out up to N such files: --skip-corrupt N"
        )
        return EXIT_CODE
    return 0


def _say(line: str) -> None:
    print_plain(line, sys.stderr)
