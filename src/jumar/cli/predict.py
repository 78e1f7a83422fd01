"""`jumar predict`."""

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from jumar.cli.train import ImportOption, SetOption
from jumar.plain_text import print_plain


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
        Print one JSON list with the probabilities of all labels instead.
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
    predictions = predict_files(request, lambda line: print_plain(line, sys.stderr))
    if json_:
        rows = [
            {
                "file": str(found.path),
                "start_s": found.start_s,
                "probabilities": {guess.label: guess.probability for guess in found.guesses},
            }
            for found in predictions
        ]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return 0
    for found in predictions:
        guesses = "   ".join(
            f"{guess.label} {100 * guess.probability:.1f} %" for guess in found.guesses[:top]
        )
        begin = "" if found.start_s is None else f" from {found.start_s:.2f} s"
        print_plain(f"{found.path}{begin}: {guesses}")
    return 0
