"""BigGAN-128 against the numbers of the original in TensorFlow 1.15, tower by tower.

Every tower starts from the stored variables, as the fixture's notes say. Both memory formats and
both ways of computing the attention are replayed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from jumar.models.biggan import BigGan
from jumar.models.biggan_names import tf_names
from jumar.models.tf_layout import TfVariable
from jumar.tasks.adversarial_losses import (
    DRAGAN_NOISE,
    AdversarialLoss,
    Hinge,
    PenalizedLoss,
)
from jumar.training.ema import Ema
from jumar.training.optimizers import Adam, create_optimizer
from tests.parity.fixture import ParityCase

Results = dict[str, NDArray[Any]]

WAYS = {
    "contiguous, attention written out": (torch.contiguous_format, False),
    "channels_last, attention fused": (torch.channels_last, True),
}
NOISE_BY_SYMMETRY = "self_attention/f_conv/bias"
"""The softmax does not change with the key's bias, so its gradient is rounding noise, which Adam
turns into whole steps."""

AFTER_GRADIENTS = ("grad_", "d_step1", "g_step2", "g_ema2")
UNDECIDED = 1e-5
"""ReLU inputs of size 1 closer to zero than this may be on either side after float32 rounding."""


class Case(ParityCase):
    """The fixture with its variables made once."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.values = self.variables("all")


class Replay:
    """The case with its network in one memory format."""

    def __init__(self, case: Case, memory_format: torch.memory_format, fused: bool) -> None:
        self.case = case
        self.memory_format = memory_format
        model = BigGan(width=case.config["ch"], latent=case.config["z_dim"], fused_attention=fused)
        self.model = model.to(memory_format=memory_format)
        self.variables = list(tf_names(self.model).variables)
        self.stored = {v.name: v.to_torch(case.values[v.tf_name]) for v in self.variables}
        self.latent = torch.from_numpy(case.input("z").reshape(-1, case.config["z_dim"]))
        self.images = self.image_input("images")
        self.found: Results = {}

    def image_input(self, name: str) -> torch.Tensor:
        values = torch.from_numpy(self.case.input(name).transpose(0, 3, 1, 2).copy())
        return values.contiguous(memory_format=self.memory_format)

    def reset(self, *, training: bool = True) -> BigGan:
        """The stored state, gradients forgotten."""
        counters = {n: t for n, t in self.model.state_dict().items() if n.endswith("_tracked")}
        self.model.load_state_dict(self.stored | counters)
        self.model.zero_grad()
        self.model.train(training)
        return self.model

    def to_double(self) -> None:
        """From here on in float64, so that little but the original's own rounding is compared."""
        self.model.double()
        self.stored = {name: value.double() for name, value in self.stored.items()}
        self.latent, self.images = self.latent.double(), self.images.double()

    def of(self, prefix: str, *, trained: bool) -> list[TfVariable]:
        trainable = dict(self.model.named_parameters())
        return [
            v
            for v in self.variables
            if v.tf_name.startswith(prefix) and (v.name in trainable) == trained
        ]

    def note_state(self, key: str, variables: list[TfVariable]) -> None:
        state = self.model.state_dict()
        for variable in variables:
            values = variable.to_tensorflow(state[variable.name])
            self.found[f"{key}/{variable.tf_name}"] = values

    def note_gradients(self, key: str, prefix: str) -> None:
        parameters = dict(self.model.named_parameters())
        for variable in self.of(prefix, trained=True):
            gradient = parameters[variable.name].grad
            assert gradient is not None
            self.found[f"{key}/{variable.tf_name}"] = variable.to_tensorflow(gradient)


@pytest.fixture(scope="module")
def case(parity: Path) -> Case:
    return Case(parity / "biggan128.npz")


@pytest.fixture(scope="module", params=list(WAYS))
def forwards(case: Case, request: pytest.FixtureRequest) -> Results:
    """Outputs, statistics, losses and penalties in float32, in one way."""
    replay = Replay(case, *WAYS[request.param])
    penalties(replay, towers(replay))
    losses(replay)
    return replay.found


@pytest.fixture(scope="module")
def trained(case: Case) -> Sequence[Results]:
    """Gradients, optimizer steps and averages; and the same with undecided ReLUs the other way.

    In float64, so that the rounding of the original alone is compared.
    """
    result: list[Results] = []
    for side in (1, -1):
        replay = Replay(case, *WAYS["channels_last, attention fused"])
        with torch.no_grad():
            fake = replay.reset().generator(replay.latent)
        replay.to_double()
        with leaning_relu(side):
            discriminator_step(replay, fake.double())
            generator_steps(replay)
        result.append(replay.found)
    return result


class LeaningRelu(torch.autograd.Function):
    """ReLU whose gradient at inputs next to zero is that of one side."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, side: int) -> torch.Tensor:
        ctx.save_for_backward(x > -side * UNDECIDED)
        return x.clamp_min(0)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        (passes,) = ctx.saved_tensors
        return gradients[0] * passes, None


@contextmanager
def leaning_relu(side: int) -> Iterator[None]:
    """Let every ReLU with an input within `UNDECIDED` of zero pass its gradient, or none.

    Whether such an input is above or below zero is chance in float32, there as here: with another
    alignment of memory this test would see other gradients.
    """

    def relu(x: torch.Tensor, inplace: bool = False) -> torch.Tensor:
        return LeaningRelu.apply(x, side)  # pyright: ignore[reportReturnType]

    with patch.object(torch.nn.functional, "relu", relu):
        yield


def towers(replay: Replay) -> torch.Tensor:
    """Both networks in both modes, and what one forward in training leaves in the state."""
    result = replay.found
    with torch.no_grad():
        fake = replay.reset().generator(replay.latent)
        replay.note_state("g_train_after", replay.of("generator/", trained=False))
        result["g_train/images"] = fake.permute(0, 2, 3, 1).numpy()
        images = replay.reset(training=False).generator(replay.latent)
        result["g_eval/images"] = images.permute(0, 2, 3, 1).numpy()
        result["d_train_real/logits"] = replay.reset().discriminator(replay.images).numpy()
        replay.note_state("d_train_real_after", replay.of("discriminator/", trained=False))
        result["d_train_fake/logits"] = replay.reset().discriminator(fake).numpy()
        result["d_eval_real/logits"] = (
            replay.reset(training=False).discriminator(replay.images).numpy()
        )
    return fake


def losses(replay: Replay) -> None:
    real = torch.from_numpy(replay.found["d_train_real/logits"])
    fake = torch.from_numpy(replay.found["d_train_fake/logits"])
    for key in replay.case.meta["results"]:
        if key.startswith("loss_table/d_"):
            kind = key.removeprefix("loss_table/d_")
            loss = AdversarialLoss.kinds[kind]()
            replay.found[key] = (loss.real(real).mean() + loss.fake(fake).mean()).numpy()
            replay.found[f"loss_table/g_{kind}"] = loss.generated(fake).mean().numpy()
    replay.found["loss/d_hinge"] = replay.found["loss_table/d_hinge"]
    replay.found["loss/g_hinge"] = replay.found["loss_table/g_hinge"]


def penalties(replay: Replay, fake: torch.Tensor) -> None:
    alpha = torch.from_numpy(replay.case.input("alpha"))
    noise = replay.image_input("eps")
    assert DRAGAN_NOISE == 0.5
    for key in replay.case.meta["results"]:
        if key.startswith("penalty/"):
            loss: PenalizedLoss = AdversarialLoss.kinds[key.removeprefix("penalty/")](penalty=10.0)
            total = loss.gradient_penalty(
                replay.reset().discriminator,
                replay.images,
                fake,
                alpha=alpha,
                noise=noise,
            )
            replay.found[key] = (total.detach() / len(fake)).numpy()


def discriminator_step(replay: Replay, fake: torch.Tensor) -> None:
    """The hinge loss of two towers with equal state, and one step of Adam."""
    config = replay.case.config
    Hinge().real(replay.reset().discriminator(replay.images)).mean().backward()
    gradients = {name: p.grad for name, p in replay.model.discriminator.named_parameters()}
    Hinge().fake(replay.reset().discriminator(fake)).mean().backward()
    for name, parameter in replay.model.discriminator.named_parameters():
        first = gradients[name]
        assert first is not None
        assert parameter.grad is not None
        parameter.grad += first
    replay.note_gradients("grad_d", "discriminator/")
    adam(replay.model.discriminator, config["d_lr"], config).step()
    replay.note_state("d_step1", replay.of("discriminator/", trained=True))


def generator_steps(replay: Replay) -> None:
    """The gradient of the generator, two steps of Adam with it, and the moving averages."""
    config = replay.case.config
    model = replay.reset()
    Hinge().generated(model.discriminator(model.generator(replay.latent))).mean().backward()
    replay.note_gradients("grad_g", "generator/")
    optimizer = adam(model.generator, config["g_lr"], config)
    averages = Ema(model, averaged=model.generator, decay=config["moving_decay"])
    for step, factor in enumerate((1, 2)):
        for parameter in model.generator.parameters():
            assert parameter.grad is not None
            parameter.grad *= factor
        optimizer.step()
        averages.update(step)
    trained = replay.of("generator/", trained=True)
    replay.note_state("g_step2", trained)
    with averages.swapped():
        replay.note_state("g_ema2", trained)


def adam(network: torch.nn.Module, rate: float, config: dict[str, Any]) -> torch.optim.Optimizer:
    settings = Adam(learning_rate=rate, beta1=config["beta1"], beta2=config["beta2"])
    return create_optimizer(settings, list(network.parameters()), [], device_type="cpu")


def test_outputs_statistics_losses_and_penalties_match_the_original(
    case: ParityCase, forwards: Results
) -> None:
    keys = {key for key in case.meta["results"] if not key.startswith(AFTER_GRADIENTS)}
    assert set(forwards) == keys
    for key, values in forwards.items():
        assert case.check(key, values), f"{key} is noise"


def test_gradients_steps_and_averages_match_the_original(
    case: ParityCase, trained: Sequence[Results]
) -> None:
    ours, other = trained
    assert set(ours) == {key for key in case.meta["results"] if key.startswith(AFTER_GRADIENTS)}
    failures: list[str] = []
    excused, compared = 0, 0
    for key in (key for key in ours if NOISE_BY_SYMMETRY not in key):
        limit = case.tolerance(key)
        assert limit is not None, f"{key} is noise"
        values = ours[key].astype(np.float64)
        doubt = np.abs(other[key] - values) + undecided_steps(case, key, ours)
        stored = np.asarray(case.arrays[f"r/{key}"], dtype=np.float64).reshape(-1)
        excess = np.abs(case.picked(key, values) - stored) - limit * np.abs(stored).max()
        excused += int((excess > 0).sum())
        compared += stored.size
        if (excess > case.picked(key, doubt)).any():
            failures.append(f"{key}: {excess.max():.2e} beyond what is allowed")
        norm = case.meta["results"][key]["stats"][2]
        doubt_of_norm = float((np.abs(values) * doubt).sum()) / (norm**2 or 1.0)
        if case.norm_error(key, values) > limit + doubt_of_norm:
            failures.append(f"{key}: the norm is off by {case.norm_error(key, values):.2e}")
    assert not failures, "\n".join(failures)
    assert excused < 0.002 * compared


def undecided_steps(case: ParityCase, key: str, found: Results) -> NDArray[np.float64]:
    """How far a value after Adam may be off because the sign of its gradient is undecided.

    With beta1 = 0 the first step of a value is its learning rate in the direction of the gradient,
    however small the gradient is. Below what rounding changes in the original's gradients of the
    variable (measured for the fixture, or seen here against float64) the sign is chance.
    """
    kind, _, name = key.partition("/")
    steps = {"d_step1": ("d", 1.0), "g_step2": ("g", 2.0), "g_ema2": ("g", 2.0)}
    if kind not in steps:
        return np.zeros(found[key].shape)
    network, count = steps[kind]
    gradient = found[f"grad_{network}/{name}"]
    found_noise = case.error(f"grad_{network}/{name}", gradient)
    measured = case.meta["results"][f"grad_{network}/{name}"]["sensitivity"]
    noise = 2 * max(found_noise, measured) * np.abs(gradient).max()
    return 2 * count * case.config[f"{network}_lr"] * 1.2 * (np.abs(gradient) <= noise)


def test_gradient_of_an_ineffective_bias_is_zero(
    trained: Sequence[Results],
) -> None:
    results = trained[0]
    keys = [key for key in results if NOISE_BY_SYMMETRY in key and key.startswith("grad_")]
    assert len(keys) == 2
    for key in keys:
        kernel = results[key.replace("/bias", "/kernel")]
        assert np.abs(results[key]).max() < 1e-4 * np.abs(kernel).max()


def test_variables_match_the_original_in_order(case: ParityCase) -> None:
    model = BigGan(width=case.config["ch"])
    state = model.state_dict()
    ours = [(v.tf_name, v.to_tensorflow(state[v.name]).shape) for v in tf_names(model).variables]
    assert ours == [(name, tuple(shape)) for name, shape, *_ in case.meta["variables"]["all"]]
    unmapped = set(state) - {v.name for v in tf_names(model).variables}
    assert all(name.endswith("num_batches_tracked") for name in unmapped)
