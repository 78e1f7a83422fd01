"""`jumar denoise`."""

from pathlib import Path

from jumar.cli.train import ImportOption, SetOption


def denoise(
    run: Path,
    source: Path,
    /,
    *,
    to: Path,
    resume: bool = False,
    skip_corrupt: int = 0,
    checkpoint: str = "last",
    ema: bool = True,
    set_: SetOption = (),
    device: str = "auto",
    import_: ImportOption = (),
) -> int:
    """Take the noise from pictures, frames or a video with the network of a run.

    Parameters
    ----------
    run
        The run directory.
    source
        A picture, a folder or zip with pictures anywhere in it, or a video (needs PyAV).
    to
        A folder, where the pictures keep their names and become PNG; or a file: a picture for a
        picture, a video (.mkv, .mp4, .mov; without sound) for a video.
    resume
        Keep the clean pictures that are there already, and go on with the others.
    skip_corrupt
        Leave out up to this many frames that cannot be read.
    checkpoint
        last, best, or a number of steps.
    ema
        Take the averaged weights where the checkpoint has them.
    set_
        Change a field, for instance `--set model.tile=256` where memory is short.
    device
        auto, cpu, cuda, npu, or one of several as in `npu:1`.
    import_
        Import a module of your own first (those of the run are imported anyway).
    """
    from jumar.recipes.denoising_files import denoise_files
    from jumar.recipes.denoising_work import DenoiseRequest

    return denoise_files(
        DenoiseRequest(
            run_dir=run,
            source=source,
            to=to,
            resume=resume,
            skip_corrupt=skip_corrupt,
            which=checkpoint,
            use_ema=ema,
            assignments=tuple(set_),
            imports=tuple(import_),
            device=device,
        )
    )
