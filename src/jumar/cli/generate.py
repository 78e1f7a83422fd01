"""`jumar generate`."""

from pathlib import Path

from jumar.cli.options import CheckpointOption, DeviceOption, EmaOption, ImportOption, SetOption


def generate(
    run: Path,
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
    import_: ImportOption = (),
) -> int:
    """Generate images with the network of a run, one file each, and a grid of all.

    Parameters
    ----------
    run
        The run directory.
    to
        Folder for the images; it must be empty or not exist yet, except with --resume.
    num
        Number of images.
    seed
        Random seed; a seed always gives the same image n.
    truncation
        Truncate the latent distribution at this many standard deviations; small values give
        better but less varied images. By default as in training. Not for vqvae-prior.
    interpolate
        Also generate interpolations from image 0 to 1, from 2 to 3 and so on, at most eight, with
        this many images each. Not for vqvae-prior.
    checkpoint
        last, best, or the number of steps of a checkpoint.
    ema
        Use the averaged (EMA) weights where the checkpoint has them.
    batch
        Images generated at once; fewer need less memory.
    resume
        Keep the images of an earlier call and generate the rest; a larger --num adds to them.
    set_
        Change a field, for example `--set precision.mode=must_keep_origin_dtype`.
    device
        auto, cpu, cuda, npu, or a particular one such as `npu:1`.
    import_
        Import a module of your own first; repeat the modules that the run was trained with.
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
            assignments=tuple(set_),
            imports=tuple(import_),
            device=device,
        )
    )
