"""`jumar denoise`."""

from pathlib import Path

from jumar.cli.options import (
    CheckpointOption,
    DeviceOption,
    EmaOption,
    RunArgument,
    RunImportOption,
    SetOption,
)


def denoise(
    run: RunArgument,
    source: Path,
    /,
    *,
    to: Path,
    resume: bool = False,
    skip_corrupt: int = 0,
    checkpoint: CheckpointOption = "last",
    ema: EmaOption = True,
    set_: SetOption = (),
    device: DeviceOption = "auto",
    import_: RunImportOption = (),
) -> int:
    """Denoise images, frames or a video with the network of a run.

    Parameters
    ----------
    source
        An image, a folder or zip with images at any depth, or a video (needs PyAV).
    to
        A folder for PNG files named after the sources, or a file: an image for an image, a video
        (.mkv, .mp4, .mov; without sound) for a video. Lost features are listed.
    resume
        Keep images or frames that are already denoised, and denoise the rest.
    skip_corrupt
        Skip up to this many unreadable frames.
    set_
        Change a field, for example `--set model.tile=256` to use less memory.
    """
    from jumar.runs.denoise import denoise_files
    from jumar.runs.denoise_work import DenoiseRequest

    return denoise_files(
        DenoiseRequest(
            run_dir=run,
            source=source,
            to=to,
            resume=resume,
            skip_corrupt=skip_corrupt,
            which=checkpoint,
            use_ema=ema,
            assignments=set_,
            imports=import_,
            device=device,
        )
    )
