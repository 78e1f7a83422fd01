"""`jumar generate`."""

from pathlib import Path

from jumar.cli.options import (
    CheckpointOption,
    DeviceOption,
    EmaOption,
    RunArgument,
    RunImportOption,
    SetOption,
)


def generate(
    run: RunArgument,
    /,
    *,
    to: Path,
    num: int = 64,
    seed: int = 1,
    truncation: float | None = None,
    interpolate: int = 0,
    checkpoint: CheckpointOption = "last",
    ema: EmaOption = True,
    batch: int = 16,
    resume: bool = False,
    set_: SetOption = (),
    device: DeviceOption = "auto",
    import_: RunImportOption = (),
) -> int:
    """Generate images with the network of a run, one file per image, and a grid of them.

    Parameters
    ----------
    to
        Folder for the images; without --resume, it must be empty or not exist yet.
    num
        Number of images.
    seed
        Random seed; the same seed always results in the same image n.
    truncation
        Truncate the latent distribution at this many standard deviations; small values improve
        images but reduce their variety. By default as in training. Not for vqvae-prior.
    interpolate
        Also interpolate between images 0 and 1, 2 and 3 and so on, at most eight pairs, with this
        many images per pair. Not for vqvae-prior.
    batch
        Number of images generated at once; fewer need less memory.
    resume
        Keep the images of an earlier call and generate the rest; a larger --num adds to them.
    set_
        Change a field, for example `--set precision.mode=must_keep_origin_dtype`.
    """
    from jumar.runs.generate import GenerateRequest
    from jumar.runs.generate import generate as draw

    return draw(
        GenerateRequest(
            run_dir=run,
            to=to,
            num=num,
            seed=seed,
            truncation=truncation,
            interpolate=interpolate,
            which=checkpoint,
            use_ema=ema,
            batch=batch,
            resume=resume,
            assignments=set_,
            imports=import_,
            device=device,
        )
    )
