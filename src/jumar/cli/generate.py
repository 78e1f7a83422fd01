"""`jumar generate`."""

from pathlib import Path

from jumar.cli.train import ImportOption, SetOption


def generate(
    run: Path,
    /,
    *,
    to: Path,
    num: int = 64,
    seed: int = 1,
    truncation: float | None = None,
    interpolate: int = 0,
    checkpoint: str = "last",
    ema: bool = True,
    batch: int = 16,
    resume: bool = False,
    set_: SetOption = (),
    device: str = "auto",
    import_: ImportOption = (),
) -> int:
    """Draw pictures with the network of a run: one file each and a grid of them.

    Parameters
    ----------
    run
        The run directory.
    to
        A folder for the pictures; it must not exist or be empty, but for --resume.
    num
        How many pictures.
    seed
        Another seed gives other pictures; picture n of a seed is always the same.
    truncation
        Draw the latent numbers below this many standard deviations only; small values give better
        and more similar pictures. By default as in training. Not for vqvae-prior.
    interpolate
        Draw lines from picture 0 to 1, from 2 to 3 and so on as well, eight at most, with so many
        pictures each. Not for vqvae-prior.
    checkpoint
        last, best, or a number of steps.
    ema
        Take the averaged weights where the checkpoint has them.
    batch
        Pictures made at once; fewer need less memory.
    resume
        Keep the pictures of an earlier call, and make the others; a larger --num adds to them.
    set_
        Change a field, for instance `--set precision.mode=must_keep_origin_dtype`.
    device
        auto, cpu, cuda, npu, or one of several as in `npu:1`.
    import_
        Import a module of your own first (those of the run are imported anyway).
    """
    from jumar.recipes.generating import GenerateRequest
    from jumar.recipes.generating import generate as draw

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
