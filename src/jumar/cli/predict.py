"""`jumar predict`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.cli.options import CheckpointOption, DeviceOption, ImportOption, JsonFlag, SetOption
from jumar.ground.errors import EXIT_CODE
from jumar.ground.text import print_plain

if TYPE_CHECKING:
    from jumar.runs.predict import PredictRequest


def predict(
    run: Path,
    /,
    *files: Path,
    checkpoint: CheckpointOption = "last",
    top: int = 3,
    json_: JsonFlag = False,
    set_: SetOption = (),
    device: DeviceOption = "auto",
    skip_corrupt: int = 0,
    import_: ImportOption = (),
) -> int:
    """Classify audio clips by word, or images by class.

    Clips may have any length and sample rate: those shorter than the training clips are padded with
    silence at the end; over a longer one a window is moved, and the window with the most probable
    word is printed. For images the class number is printed, since a run does not store class names.

    Parameters
    ----------
    run
        The run directory.
    files
        WAV files for a keyword spotting run, images for an image classification run; or folders,
        of which all such files are used.
    checkpoint
        last, best, or the number of steps of a checkpoint.
    top
        Number of guesses to print for each file.
    json_
        Print one JSON object instead: `results` with the probabilities of all labels, and
        `errors` with the files that cannot be read; exit code 2 if there are more of these than
        --skip-corrupt.
    set_
        Change a field, for example `--set precision.mode=force_fp16`.
    device
        auto, cpu, cuda, npu, or one of several as in `npu:1`.
    skip_corrupt
        Skip up to this many unreadable files.
    import_
        Import a module of your own first; those that the run was made with must be named again.
    """
    from jumar.ground.errors import UserError
    from jumar.runs.open_trained import TrainedRequest
    from jumar.runs.predict import PredictRequest
    from jumar.runs.predict import predict as predict_files

    if not files:
        raise UserError("no file given", todo=f"For instance: jumar predict {run} clip.wav")
    if top < 1:
        raise UserError(f"cannot print {top} guesses", where="--top", todo="1 or more.")
    trained = TrainedRequest(
        run_dir=run, which=checkpoint, assignments=set_, imports=import_, device=device
    )
    request = PredictRequest(files=files, trained=trained, skip_corrupt=skip_corrupt)
    if json_:
        return _print_json(request)
    for prediction in predict_files(request, _say):
        guesses = "   ".join(
            f"{guess.label} {100 * guess.probability:.1f} %" for guess in prediction.guesses[:top]
        )
        begin = "" if prediction.start_s is None else f" from {prediction.start_s:.2f} s"
        print_plain(f"{prediction.path}{begin}: {guesses}")
    return 0


def _print_json(request: "PredictRequest") -> int:
    """All answers and all errors as one JSON object; 2 where more files fail than are tolerated."""
    from jumar.runs.predict import Prediction, answers

    results: list[dict[str, Any]] = []
    errors: list[dict[str, str]] = []
    for answer in answers(request, _say):
        if isinstance(answer, Prediction):
            probabilities = {guess.label: guess.probability for guess in answer.guesses}
            row = {"file": str(answer.path), "start_s": answer.start_s}
            results.append({**row, "probabilities": probabilities})
        else:
            errors.append({"file": str(answer.path), "error": answer.error.what})
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
