"""Runs of others: trained here, then changed by someone who wants to do harm."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.attacks.ground import Ground
from tests.attacks.hostile import (
    ONE_LINE,
    bomb,
    code,
    lying_safetensors,
    numbered,
    torch_file,
    worded,
    write_json,
)
from tests.cli.in_process import here, settings
from tests.recipes.small_data import write_signs

IMPORTS = {"small": "tests.cli.small_recipe", "inverse": "tests.cli.small_denoisers"}


def train_all(folder: Path) -> None:
    """A run of each kind that a command asks for."""
    for recipe, module in IMPORTS.items():
        here(
            "train", recipe, "--import", module, "--device", "cpu", "--run-dir", recipe, cwd=folder
        )
    write_signs(folder / "signs")
    fields = settings(
        model__backbone="resnet18",
        model__width=4,
        data__image_size=32,
        data__eval_path="none",
        data__batch_size=2,
        data__workers=0,
        training__duration="1it",
        training__ema_decay=0,
        data__path=folder / "signs",
    )
    here("train", "psenet-small", "--device", "cpu", "--run-dir", "psenet", *fields, cwd=folder)


def nothing(ground: Ground, run: Path) -> None:
    """A run that nobody has changed, with which the command does its work."""


def copied(ground: Ground, kind: str) -> Path:
    """A run of a kind, to be changed."""
    return Path(shutil.copytree(ground.runs / kind, ground.work / "run"))


def pickles(ground: Ground, run: Path) -> None:
    """The files of the checkpoint are pickles, in the current form and in the older one."""
    (folder,) = (run / "checkpoints").iterdir()
    (folder / "checkpoint.json").unlink()
    for path in list(folder.iterdir()):
        path.write_bytes(bomb(ground.canary))
    (folder / "state.json").unlink()
    (folder / "state.pt").write_bytes(torch_file(ground.canary))


def weights(ground: Ground, run: Path) -> None:
    """A header of tensors that are not in the file."""
    (folder,) = (run / "checkpoints").iterdir()
    (folder / "checkpoint.json").unlink()
    (folder / "model.safetensors").write_bytes(lying_safetensors())


def words_beside(ground: Ground, run: Path) -> None:
    """All but the recipe says something harmful."""
    for name in ("results.json", "environment.json", "resolved.json"):
        write_json(run / name, worded(json.loads((run / name).read_text())))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    kinds = [
        {**row, **{word: number for number, word in enumerate(ONE_LINE)}, "weights": word}
        for row, word in zip(lines * 4, ONE_LINE, strict=False)
    ]
    text = "".join(json.dumps(row) + "\n" for row in kinds)
    (run / "metrics.jsonl").write_text(text)
    (run / "log.txt").write_text("\n".join(ONE_LINE))


def words_in_results(ground: Ground, run: Path) -> None:
    """Results that are well formed, of scores and devices with harmful names."""
    results = json.loads((run / "results.json").read_text())
    word, other, formula = ONE_LINE[0], ONE_LINE[2], ONE_LINE[6]
    results |= {"metrics": {"top1": 1.0, word: 2.0, other: 3.0, formula: 4.0}, "state": "finished"}
    results["device"] = {"kind": "cpu", "name": other}
    results["headline"]["unit"] = other
    results["unreadable_samples"] = [other, word, formula]
    results["precision"]["note"] = other
    write_json(run / "results.json", results)
    picture = run / "pictures" / "step-00000002"
    write_json(picture / "captions.json", {"a.png": other, f"{other}.png": word, "../b": word})
    (picture / "a.png").write_bytes(b"<svg onload=attackCanary()>")


def words_in_recipe(ground: Ground, run: Path) -> None:
    """Each text of the recipe is harmful."""
    stored = json.loads((run / "recipe.json").read_text())
    write_json(run / "recipe.json", {**stored, "settings": worded(stored["settings"])})


def names(ground: Ground, run: Path) -> None:
    """The recipe and a field have names that no recipe has."""
    stored = json.loads((run / "recipe.json").read_text())
    fields = {**stored["settings"], **dict.fromkeys(ONE_LINE, 1)}
    write_json(run / "recipe.json", {**stored, "settings": fields})


def unknown(ground: Ground, run: Path) -> None:
    """A recipe that nobody registered."""
    stored = json.loads((run / "recipe.json").read_text())
    write_json(run / "recipe.json", {**stored, "recipe": "".join(ONE_LINE)})


def numbers(ground: Ground, run: Path) -> None:
    """Each number is impossible."""
    for name in ("recipe.json", "results.json", "resolved.json"):
        write_json(run / name, numbered(json.loads((run / name).read_text()), len(name)))
    text = (run / "metrics.jsonl").read_text().splitlines()
    rows = [json.dumps(numbered(json.loads(row), turn)) for turn, row in enumerate(text)]
    (run / "metrics.jsonl").write_text("\n".join(rows))


def modules(ground: Ground, run: Path) -> None:
    """Modules in the run, which it names itself or which libraries look for."""
    stored = json.loads((run / "recipe.json").read_text())
    write_json(run / "recipe.json", {**stored, "imports": ["run.payload", "payload"]})
    for name in ("payload", "sitecustomize", "usercustomize", "json5", "conftest", "__init__"):
        (run / f"{name}.py").write_text(code(ground.canary))


def data(ground: Ground, run: Path) -> None:
    """Data that lie elsewhere, under a name that climbs."""
    stored = json.loads((run / "recipe.json").read_text())
    stored["settings"]["data"]["path"] = f"{ONE_LINE[0]}/../../outside/secret.txt"
    write_json(run / "recipe.json", stored)


def links(ground: Ground, run: Path) -> None:
    """Files that are links to those of the user."""
    for name in ("results.json", "log.txt", "report.html", "metrics.jsonl"):
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(ground.secret)
    (run / ".lock").unlink(missing_ok=True)
    (run / ".lock").symlink_to(ground.outside / "escaped-lock")
    (run / "tensorboard").exists() and shutil.rmtree(run / "tensorboard")
    (run / "tensorboard").symlink_to(ground.outside)
    (run / "profile").symlink_to(ground.outside)


def linked_checkpoints(ground: Ground, run: Path) -> None:
    """A folder of checkpoints that is the user's own."""
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").symlink_to(ground.outside)


HARMS: dict[str, Callable[[Ground, Path], object]] = {
    each.__name__: each
    for each in (
        *(nothing, pickles, weights, words_beside, words_in_results, words_in_recipe),
        *(names, unknown, numbers, modules, data, links, linked_checkpoints),
    )
}
