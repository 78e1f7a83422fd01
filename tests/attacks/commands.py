"""For each command that reads what others wrote, the files with which it is attacked."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.attacks.files import (
    DOCUMENT,
    PNG,
    cann_results,
    dump,
    logs,
    mixlist,
    pictures,
    profile_folder,
    rank_table,
    scripts,
    sweep,
    tensorflow,
    trained_on,
    wrong_report,
)
from tests.attacks.ground import Ground
from tests.attacks.hostile import (
    ONE_LINE,
    bomb,
    code,
    lying_safetensors,
    lying_wav,
    torch_file,
)
from tests.attacks.runs import HARMS, IMPORTS, copied

Words = Sequence[str | Path]
Attack = Callable[[Ground], Iterator[Words]]
"""Writes the files, and yields the arguments of each call, one call after the other."""

ATTACKS: dict[str, list[Attack]] = {}


def attacks(command: str) -> Callable[[Attack], Attack]:
    """Register the attacks on a command."""

    def add(attack: Attack) -> Attack:
        ATTACKS.setdefault(command, []).append(attack)
        return attack

    return add


REASONS = {
    "recipes list": "reads nothing",
    "recipes show": "reads nothing",
    "precision modes": "reads nothing",
    "precision ops": "reads an op list that the user names, by the reader of `precision lint`",
    "profile views": "reads nothing",
    "port rules": "reads nothing",
    "port check": "runs the user's script, which is what it is for",
    "data keywords": "reads nothing but the voices of eSpeak NG",
    "doctor": "reads the system, and nothing that came with a file",
    "tune speed": "opens a run as `profile` does, and then trains it for minutes",
    "tune measure": "is started by `tune speed` alone, which writes what it reads",
    "tune accuracy": "takes the name of a recipe, and goes on as a sweep does",
    "tune rate": "takes the name of a recipe, and opens its data as `train` does",
}
"""Commands that are not attacked, and why."""

RUN_COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "train": ("small", ("--resume", "--run-dir", "run", "--dry-run")),
    "evaluate": ("small", ("run",)),
    "generate": ("small", ("run", "--to", "out", "--num", "1")),
    "denoise": ("inverse", ("run", "one.png", "--to", "out")),
    "detect": ("psenet", ("run", "one.png", "--to", "out")),
    "predict": ("small", ("run", "one.png")),
    "report": ("small", ("run",)),
    "weights show": ("small", ("run",)),
    "weights export": ("small", ("run", "--to", "tf1", "--out", "out/a")),
    "precision dump": ("small", ("run", "--to", "out", "--level", "modules")),
    "precision overflow": ("small", ("run", "--to", "out", "--steps", "1", "--first", "0")),
    "precision search": ("small", ("run", "--tolerance", "top1=1")),
    "precision runs": ("small", ("run", "run")),
    "export": ("small", ("run", "--to", "model.safetensors")),
    "tune aoe": ("small", ("run", "--to", "out")),
    "precision diverge": ("small", ("run", "run", "--to", "out")),
    "precision noise": ("small", ("run", "--top", "1", "--step", "0")),
    "profile": ("small", ("run", "--steps", "1", "--warm-up", "0")),
}
"""Which run a command needs, and its words."""
REFUSED_ANYWAY = {
    "generate": "the run is of a classifier; it is refused after it has been read",
    "precision search": "the run's mode has no op lists; a search would train three times",
    "weights export": "the network has no names in TensorFlow",
}
"""Commands that want another run than there is, and why that is enough."""
WITHOUT_DEVICE = (
    *("report", "weights show", "weights export", "precision runs"),
    *("export", "tune aoe"),
)


def on_run(command: str, harm: str, ground: Ground) -> Words:
    """A command on a run that somebody has changed."""
    kind, arguments = RUN_COMMANDS[command]
    run = copied(ground, kind)
    HARMS[harm](ground, run)
    if "one.png" in arguments:
        ground.write("one.png", PNG)
    device = () if command in WITHOUT_DEVICE else ("--device", "cpu")
    known = command not in ("report", "weights show", "precision runs") and kind in IMPORTS
    modules = ("--import", IMPORTS[kind]) if known else ()
    return (*command.split(), *arguments, *device, *modules)


@attacks("train")
def data_of_others(ground: Ground) -> Iterator[Words]:
    for number, source in enumerate((*pictures(ground), *trained_on(ground))):
        yield (
            *("train", "small", "--import", IMPORTS["small"], "--device", "cpu", "--dry-run"),
            *("--run-dir", f"run{number}", "--set", f"data.path={source}"),
        )


@attacks("train")
def runs_that_go_on(ground: Ground) -> Iterator[Words]:
    fields = ("--set", "training.duration=3it", "--device", "cpu", "--import", IMPORTS["small"])
    for harm in ("links", "linked_checkpoints", "words_in_results", "modules", "nothing"):
        run = copied(ground, "small")
        HARMS[harm](ground, run)
        yield ("train", "--resume", "--run-dir", run, *fields)
        shutil.rmtree(run)


@attacks("train")
def weights_to_start_from(ground: Ground) -> Iterator[Words]:
    for number, source in enumerate(tensor_files(ground)):
        yield (
            *("train", "small", "--import", IMPORTS["small"], "--device", "cpu", "--dry-run"),
            *("--run-dir", f"run{number}", "--set", f"transfer.start_from={source}"),
        )


@attacks("data check")
def checked(ground: Ground) -> Iterator[Words]:
    for source in (*pictures(ground), *trained_on(ground)):
        yield ("data", "check", source)


@attacks("evaluate")
def evaluated_on(ground: Ground) -> Iterator[Words]:
    run = copied(ground, "small")
    for source in pictures(ground):
        fields = ("--set", f"data.eval_path={source}", "--import", IMPORTS["small"])
        yield ("evaluate", run, "--device", "cpu", *fields)


@attacks("denoise")
def denoised(ground: Ground) -> Iterator[Words]:
    run = copied(ground, "inverse")
    for number, source in enumerate(pictures(ground)):
        yield (
            *("denoise", run, source, "--to", f"out{number}", "--device", "cpu"),
            *("--skip-corrupt", "9", "--import", IMPORTS["inverse"]),
        )


@attacks("detect")
def looked_at(ground: Ground) -> Iterator[Words]:
    run = copied(ground, "psenet")
    for number, source in enumerate(pictures(ground)):
        words = ("detect", run, source, "--to", f"out{number}", "--device", "cpu")
        yield (*words, "--skip-corrupt", "9")


@attacks("predict")
def predicted(ground: Ground) -> Iterator[Words]:
    run = copied(ground, "small")
    pictures(ground)
    ground.write("pictures/a.wav", lying_wav())
    for source in ("pictures", "pictures/train/cat", "pictures/a.wav"):
        yield ("predict", run, source, "--device", "cpu", "--import", IMPORTS["small"])
        more = ("--skip-corrupt", "9", "--import", IMPORTS["small"])
        yield ("predict", run, source, "--json", "--device", "cpu", *more)


@attacks("report")
def sweep_of_others(ground: Ground) -> Iterator[Words]:
    yield ("report", sweep(ground))


@attacks("sweep")
def sweep_that_goes_on(ground: Ground) -> Iterator[Words]:
    vary = ("--vary", "seed=1,2", "--device", "cpu")
    yield ("sweep", "alexnet-demo", *vary, "--to", sweep(ground))


def tensor_files(ground: Ground) -> list[Path]:
    """Files of weights, of which most are something else."""
    return [
        ground.write("a.pt", torch_file(ground.canary)),
        ground.write("b.safetensors", torch_file(ground.canary)),
        ground.write("c.safetensors", bomb(ground.canary)),
        ground.write("d.safetensors", lying_safetensors()),
        ground.write("e.safetensors", b"\xff" * 8 + b"{}"),
        ground.write("f.pb", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + b"x" * 20),
        *tensorflow(ground),
    ]


@attacks("weights show")
def shown_weights(ground: Ground) -> Iterator[Words]:
    for source in tensor_files(ground):
        yield ("weights", "show", source)
        yield ("weights", "show", "--verify", "--json", source)


@attacks("weights import")
def imported_weights(ground: Ground) -> Iterator[Words]:
    for number, source in enumerate(tensor_files(ground)):
        yield ("weights", "import", "ds-cnn-s", source, "--to", f"out{number}.safetensors")
        yield ("weights", "import", "bert", source, "--to", f"bert{number}.safetensors")


@attacks("weights export")
def exported_weights(ground: Ground) -> Iterator[Words]:
    for number, source in enumerate(tensor_files(ground)):
        words = ("weights", "export", source, "--to", "tf1", "--out", f"out{number}/a")
        yield (*words, "--recipe", "ds-cnn-s")


@attacks("data pretraining")
def texts_of_others(ground: Ground) -> Iterator[Words]:
    text = ground.write(f"{ONE_LINE[0]}.txt", DOCUMENT)
    vocabulary = "\n".join(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *ONE_LINE[:-1], "a"))
    ground.write("vocab.txt", vocabulary)
    ground.write("pickle.txt", bomb(ground.canary))
    small = ("--max-seq-length", "32", "--workers", "1", "--shards", "1")
    yield ("data", "pretraining", "--vocab", "vocab.txt", "--to", "out", *small, text)
    yield ("data", "pretraining", "--vocab", "pickle.txt", "--to", "out1", *small, text)
    yield ("data", "pretraining", "--vocab", "vocab.txt", "--to", "out2", *small, "pickle.txt")


@attacks("data vocab")
def words_of_others(ground: Ground) -> Iterator[Words]:
    ground.write("a.txt", DOCUMENT)
    ground.write("b.txt", bomb(ground.canary))
    for name in ("a.txt", "b.txt"):
        yield ("data", "vocab", "--to", f"{name}.vocab", "--size", "100", name)


@attacks("data tfrecord")
def packed_pictures(ground: Ground) -> Iterator[Words]:
    for number, source in enumerate(pictures(ground)):
        yield (
            "data",
            "tfrecord",
            source,
            "--to",
            f"out{number}",
            "--workers",
            "1",
            "--shards",
            "1",
        )


@attacks("data words-in-pictures")
def written_on(ground: Ground) -> Iterator[Words]:
    for number, source in enumerate(pictures(ground)):
        few = ("--pictures", "1", "--eval-pictures", "1", "--workers", "1")
        yield ("data", "words-in-pictures", "--to", f"out{number}", *few, "--photographs", source)
    font = ground.write("font.ttf", b"\0\1\0\0\xff\xff" + bytes(100))
    yield ("data", "words-in-pictures", "--to", "out", "--pictures", "1", "--fonts", font)


@attacks("precision compare")
def dumps_of_others(ground: Ground) -> Iterator[Words]:
    made = ground.runs / "dump" / "step-00000000" / "rank-0"
    for number, source in enumerate(dump(ground, made)):
        yield ("precision", "compare", made, source, "--csv", f"{number}.csv")
        yield ("precision", "compare", source, source, "--page", f"{number}.html")


@attacks("precision convert")
def converted_dumps(ground: Ground) -> Iterator[Words]:
    made = ground.runs / "dump" / "step-00000000" / "rank-0"
    for number, source in enumerate((made, *dump(ground, made))):
        yield ("precision", "convert", source, "--to", f"out{number}")
        yield ("precision", "convert", source, "--to", f"outer{number}/a", "--json")


@attacks("precision diverge")
def hashes_of_others(ground: Ground) -> Iterator[Words]:
    run = copied(ground, "small")
    fields = ("--device", "cpu", "--import", IMPORTS["small"], "--to", "out")
    for path in mixlist(ground):
        yield ("precision", "diverge", run, path, *fields)


@attacks("precision results")
def results_of_others(ground: Ground) -> Iterator[Words]:
    for path in cann_results(ground):
        yield ("precision", "results", path, "--top", "0")
        yield ("precision", "results", path, "--json")


@attacks("precision lint")
def lists_of_others(ground: Ground) -> Iterator[Words]:
    for path in mixlist(ground):
        yield ("precision", "lint", path)
        yield ("precision", "lint", path, "--json")


@attacks("profile show")
def profiles_of_others(ground: Ground) -> Iterator[Words]:
    for number, source in enumerate(profile_folder(ground)):
        yield ("profile", "show", source, "--csv", f"csv{number}", "--page", f"{number}.html")


@attacks("profile compare")
def compared_profiles(ground: Ground) -> Iterator[Words]:
    first, *others = profile_folder(ground)
    for number, source in enumerate(others):
        yield (
            *("profile", "compare", first, source, "--csv", f"{number}.csv"),
            *("--page", f"{number}.html", "--mixlist", f"{number}.json"),
        )


@attacks("profile gate")
def gated_profiles(ground: Ground) -> Iterator[Words]:
    for source in profile_folder(ground):
        yield ("profile", "gate", source, "--max-free-share", "1")


@attacks("port")
def ported_scripts(ground: Ground) -> Iterator[Words]:
    project, script = scripts(ground)
    reports = ("--report", "a.html", "--report", "a.md", "--report", "a.json")
    yield ("port", project, "--to", "out", *reports, "--jobs", "1")
    yield ("port", script, "--jobs", "1")
    yield ("port", project, "--json", "--jobs", "1", "--from", "torch")


@attacks("port lint")
def linted_scripts(ground: Ground) -> Iterator[Words]:
    for source in scripts(ground):
        yield ("port", "lint", source)
        yield ("port", "lint", source, "--json", "--lang", "zh")


@attacks("port report")
def reports_of_others(ground: Ground) -> Iterator[Words]:
    stored = json.loads((ground.runs / "port.json").read_text())
    for path in wrong_report(ground, stored):
        yield ("port", "report", path)
        yield ("port", "report", path, "--to", f"{path.stem}.html", "--to", f"{path.stem}.md")


@attacks("launch")
def tables_for_launches(ground: Ground) -> Iterator[Words]:
    ground.write("train it.py", code(ground.canary))
    for number, table in enumerate(rank_table(ground)):
        for place in ("this", "slurm"):
            yield (
                *("launch", "train it.py", "--on", place, "--to", f"{place}{number}"),
                *("--device", "npu", "--devices", "1", "--rank-table", table),
            )


@attacks("launch ranktable")
def tables_of_others(ground: Ground) -> Iterator[Words]:
    for number, table in enumerate(rank_table(ground)):
        yield ("launch", "ranktable", table)
        for version in ("0", "1.0"):
            to = f"out{number}-{version}.json"
            yield ("launch", "ranktable", table, "--to-version", version, "--to", to)


@attacks("explain")
def logs_of_others(ground: Ground) -> Iterator[Words]:
    for source in logs(ground):
        yield ("explain", source)
        yield ("explain", source, "--json")
