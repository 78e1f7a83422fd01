"""Every recipe with TensorFlow names: out and in again is the identity, and TensorFlow agrees."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from jumar.recipes.registry import create_recipe, list_recipes
from jumar.runs.weights_exchange import Network, Weights, network_of
from jumar.runs.weights_export import weight_makers
from jumar.runs.weights_import import ImportRequest, import_weights
from jumar.settings import override
from jumar.weights.bundle_writer import write_bundle
from tests.tensorflow115 import run_tensorflow, tensorflow_python

VQVAE_RUN = "vqvae.run"
_BERT = ("model.size=nezha-tiny", "model.vocab_size=30")
CASES = {
    "alexnet-demo": ("model.num_classes=3",),
    "resnext50": ("model.num_classes=3",),
    "bert-base": ("model.size=bert-tiny", "model.vocab_size=30"),
    "nezha-base": _BERT,
    "bert-classify": (*_BERT, "data.labels=a,b,c"),
    "bert-ner": (*_BERT, "data.labels=O,B-X"),
    "bert-reading": ("model.size=bert-tiny", "model.vocab_size=30"),
    "biggan128": ("model.width=8",),
    "ds-cnn-s": (),
    "ds-cnn-m": (),
    "ds-cnn-l": (),
    "videnn-spatial": (),
    "videnn-temporal": (),
    "nlrn": (),
    "psenet": ("model.backbone=resnet18", "model.width=8"),
    "east": ("model.backbone=resnet18",),
    "vqvae": (),
    "vqvae-cifar10": (),
    "vqvae-mnist": (),
    "vqvae-prior": (VQVAE_RUN,),
}
"""Recipes with settings that make them small."""
VARIANTS = {
    "alexnet": "alexnet-demo",
    "alexnet-8p": "alexnet-demo",
    "resnext50-1p": "resnext50",
    "resnext50-8p": "resnext50",
    "resnext50-256bs-8p": "resnext50",
    "bert-large": "bert-base",
    "bert-tiny": "bert-base",
    "nezha-large": "nezha-base",
    "biggan128-cats": "biggan128",
    "videnn-spatial-loss-scale": "videnn-spatial",
    "nlrn-small": "nlrn",
    "psenet-small": "psenet",
    "east-small": "east",
}
"""Recipes whose network another one has as well."""


class Exported(NamedTuple):
    """A network with distinct values in every weight, and the file with them."""

    network: Network
    averages: Weights
    settings: tuple[str, ...]
    prefix: Path


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Exported]:
    """The exported checkpoint of a recipe, written once."""
    written: dict[str, Exported] = {}

    def get(name: str) -> Exported:
        if name not in written:
            settings = CASES[name]
            if VQVAE_RUN in settings:
                first = get("vqvae-mnist")
                run = tmp_path_factory.mktemp("runs") / "vqvae"
                import_weights(ImportRequest(recipe="vqvae-mnist", file=first.prefix, to=run))
                settings = (f"{VQVAE_RUN}={run}",)
            network = network_of(override(create_recipe(name), settings), name)
            for weight in network.weights.values():
                if weight.is_floating_point():
                    weight.uniform_(-1, 1)
            averages = {
                key: torch.rand_like(weight) if key in network.trained else weight
                for key, weight in network.weights.items()
            }
            prefix = tmp_path_factory.mktemp(name) / "model.ckpt"
            made = weight_makers(network, averages)
            write_bundle(prefix, {key: value() for key, value in made.items()})
            written[name] = Exported(network, averages, settings, prefix)
        return written[name]

    return get


def test_every_recipe_is_covered() -> None:
    assert {row.name for row in list_recipes() if row.module.startswith("jumar.")} == {
        *CASES,
        *VARIANTS,
    }


@pytest.mark.parametrize("name", CASES)
def test_every_weight_round_trips(
    exported: Callable[[str], Exported], tmp_path: Path, name: str
) -> None:
    network, averages, settings, prefix = exported(name)
    back: list[Mapping[str, torch.Tensor]] = []
    for raw in (True, False):
        to = tmp_path / f"{raw}.safetensors"
        import_weights(
            ImportRequest(recipe=name, file=prefix, to=to, assignments=settings, raw=raw)
        )
        back.append(load_file(to))
    plain, averaged = back
    assert set(plain) == set(network.weights)
    has_averages = network.names.averages != "none"
    some_average = False
    for key, weight in network.weights.items():
        if not weight.is_floating_point():
            continue
        assert torch.equal(plain[key], weight), key
        if has_averages and torch.equal(averaged[key], averages[key]):
            some_average |= key in network.trained
        else:
            assert torch.equal(averaged[key], weight), key
    assert some_average is has_averages


RESTORED = """
import hashlib
found = {}
for prefix in sys.argv[1:]:
    tf.reset_default_graph()
    listed = tf.train.list_variables(prefix)
    variables = [tf.get_variable(name, shape) for name, shape in listed]
    with tf.Session() as session:
        tf.train.Saver(variables).restore(session, prefix)
        values = session.run(variables)
    found[prefix] = {
        name: [shape, hashlib.sha1(np.ascontiguousarray(value).data).hexdigest()]
        for (name, shape), value in zip(listed, values)
    }
answer(found)
"""


@pytest.mark.slow
def test_tensorflow_restores_every_weight_under_the_name_of_the_original(
    exported: Callable[[str], Exported],
) -> None:
    tensorflow_python()
    cases = [exported(name) for name in CASES]
    result = run_tensorflow(RESTORED, *(str(case.prefix) for case in cases), timeout_s=600)
    for case in cases:
        expected = {
            name: [list(array.shape), hashlib.sha1(np.ascontiguousarray(array).data).hexdigest()]
            for name, array in (
                (name, made()) for name, made in weight_makers(case.network, case.averages).items()
            )
        }
        assert result[str(case.prefix)] == expected, case.network.name
