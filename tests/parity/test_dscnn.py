"""DS-CNN and its MFCC front end against the numbers of the original in TensorFlow 1.15.

The networks with made-up weights are replayed in both ways of computing 1x1 convolutions; the
published frozen networks from their files and from the four recordings beside them.
"""

import json
import re
import wave
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from jumar.models.dscnn import DSCNN, SIZES, tf_names, tf_variables
from jumar.models.mfcc import Mfcc, PowerSpectrogram
from jumar.training.optimizers import Adam, create_optimizer
from jumar.weights.frozen_graph import read_constants
from tests.parity.fixture import ParityCase
from tests.parity.undecided import with_doubt

Results = dict[str, NDArray[Any]]
Replay = tuple[Results, Callable[[], Results]]
"""What was computed, and how far it may be off."""

MEMORY_FORMATS = {
    "contiguous": torch.contiguous_format,
    "channels_last": torch.channels_last,
}
CLIPS = ("yes", "no", "silence", "noise")
FRONT_END = re.compile(r"frontend/clip(\d+)/w(\d+)s(\d+)/(?:power|mfcc(\d+))")
FROZEN = re.compile(r"frozen_(\w+)/(\w+)/")


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "dscnn.npz")


@pytest.fixture(scope="module")
def published(shared: Path) -> Path:
    """The frozen networks with recordings and what TensorFlow made of them."""
    return shared / "data" / "pretrained" / "ml-kws"


@pytest.fixture(scope="module", params=list(MEMORY_FORMATS))
def replay(case: ParityCase, request: pytest.FixtureRequest) -> Replay:
    """What the networks with made-up weights compute here in one memory format.

    What is trained is computed in float64: the sign of a ReLU input next to zero, of which the
    smallest network has one, is chance in float32.
    """
    result: Results = {}
    models: dict[str, DSCNN] = {}
    for size in case.meta["variables"]:
        model = DSCNN(
            num_labels=case.config["label_count"], size=case.config["model_size_info"][size]
        )
        model.to(memory_format=MEMORY_FORMATS[request.param])
        result |= evaluated(case, model, size)
        models[size] = model.double()

    def all_trained() -> Results:
        results: Results = {}
        for size, model in models.items():
            results |= trained(case, model, size)
        return results

    ours, doubt = with_doubt(all_trained)
    return result | ours, doubt


@pytest.fixture
def results(replay: Replay) -> Results:
    return replay[0]


def evaluated(case: ParityCase, model: DSCNN, size: str) -> Results:
    """Logits and every activation with the moving statistics."""
    load(model, case.variables(size))
    model.eval()
    result: Results = {}
    names = relu_names(model)

    def record(module: nn.Module, inputs: Any, output: torch.Tensor) -> None:
        del module, inputs
        result[f"eval_{size}/act/{next(names)}"] = channels_at_the_end(output)

    handles = [m.register_forward_hook(record) for m in model.modules() if isinstance(m, nn.ReLU)]
    with torch.no_grad():
        result[f"eval_{size}/logits"] = model(features(case)).numpy()
    for handle in handles:
        handle.remove()
    return result


def trained(case: ParityCase, model: DSCNN, size: str) -> Results:
    """Loss, gradients, moving statistics and an Adam step with batch statistics."""
    load(model, case.variables(size))
    model.train()
    parameters = dict(model.named_parameters())
    optimizer = create_optimizer(
        Adam(learning_rate=case.config["learning_rate"], epsilon=1e-8),
        list(parameters.values()),
        [],
        device_type="cpu",
    )
    labels = torch.from_numpy(case.input("labels").astype(np.int64))
    model.zero_grad()
    logits = model(features(case).double())
    loss = F.cross_entropy(logits, labels)
    loss.backward()
    result: Results = {
        f"train_{size}/logits": logits.detach().numpy(),
        f"train_{size}/loss": loss.detach().numpy(),
    }
    gradients = {name: parameter.grad for name, parameter in parameters.items()}
    state = model.state_dict()
    for variable in tf_variables(model):
        if "/moving_" in variable.tf_name:
            key = f"train_{size}/stats1/{variable.tf_name}"
            result[key] = variable.to_tensorflow(state[variable.name])
        else:
            gradient = gradients[variable.name]
            assert gradient is not None
            key = f"train_{size}/grad/{variable.tf_name}"
            result[key] = variable.to_tensorflow(gradient)
    optimizer.step()
    for variable in tf_variables(model):
        if variable.name in parameters:
            key = f"train_{size}/step1/{variable.tf_name}"
            result[key] = variable.to_tensorflow(parameters[variable.name])
    return result


def load(model: DSCNN, values: Mapping[str, NDArray[Any]]) -> None:
    state = {v.name: v.to_torch(values[v.tf_name]) for v in tf_variables(model)}
    left = model.load_state_dict(state, strict=False)
    assert not left.unexpected_keys
    assert all(name.endswith("num_batches_tracked") for name in left.missing_keys)


def features(case: ParityCase) -> torch.Tensor:
    fingerprints = torch.from_numpy(case.input("fingerprint"))
    return fingerprints.reshape(len(fingerprints), -1, case.config["dct"])


def relu_names(model: DSCNN) -> Iterator[str]:
    yield "DS-CNN/conv_1/batch_norm/Relu"
    for number in range(1, len(model.blocks) + 1):
        yield f"DS-CNN/conv_ds_{number}/dw_conv/batch_norm/Relu"
        yield f"DS-CNN/conv_ds_{number}/pw_conv/batch_norm/Relu"


def channels_at_the_end(maps: torch.Tensor) -> NDArray[Any]:
    return maps.detach().permute(0, 2, 3, 1).numpy().copy()


def made_audio(case: ParityCase) -> torch.Tensor:
    """The clips of the front end's case, by the rule in its notes."""
    frequency, amplitude = case.input("audio_freq"), case.input("audio_amp")
    seconds = np.arange(case.config["sample_rate"]) / case.config["sample_rate"]
    tones = amplitude[:, :, None] * np.sin(2 * np.pi * frequency[:, :, None] * seconds)
    audio = tones.sum(1) + case.input("audio_noise")
    audio[-1, :8000] = 0
    return torch.from_numpy(np.clip(audio, -1, 1).astype(np.float32))


def recording(published: Path, clip: str) -> torch.Tensor:
    """A recording [1, samples] as TensorFlow decodes it."""
    with wave.open(str(published / "samples" / f"{clip}_1000ms.wav")) as file:
        pcm = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
    return torch.from_numpy(pcm.astype(np.float32) / 32768)[None]


def frozen(published: Path, size: str) -> DSCNN:
    """A published network, read from its graph by the names that stand beside the network."""
    constants = read_constants(published / f"DS_CNN_{size}.pb")
    model = DSCNN(num_labels=12, size=SIZES[size])
    names = tf_names(model)
    values: dict[str, NDArray[Any]] = {}
    for name in constants:
        if not any(re.search(pattern, name) for pattern in names.ignored):
            values[renamed(name, names.renamings)] = constants[name]
    assert set(values) == {variable.tf_name for variable in names.variables}
    load(model, values)
    return model.eval()


def renamed(name: str, renamings: Any) -> str:
    for pattern, replacement in renamings:
        if re.search(pattern, name):
            return re.sub(pattern, replacement, name)
    return name


def bias_before_norm(key: str) -> bool:
    return key.endswith("/biases") and not key.endswith("fc1/biases")


def test_every_network_result_matches_within_tolerance(case: ParityCase, replay: Replay) -> None:
    results, doubt = replay
    expected = {
        key for key in case.meta["results"] if not FRONT_END.match(key) and not FROZEN.match(key)
    }
    assert set(results) == expected
    # The gradient of a bias before a norm is rounding noise, of which Adam makes a whole step.
    compared = {
        key: values
        for key, values in results.items()
        if not (bias_before_norm(key) and ("/grad/" in key or "/step1/" in key))
    }
    assert not case.check_some(compared, doubt)


def test_biases_cancelled_by_a_batch_norm_have_no_gradient(
    case: ParityCase, results: Results
) -> None:
    keys = [key for key in results if "/grad/" in key and bias_before_norm(key)]
    sizes = [case.config["model_size_info"][size] for size in case.meta["variables"]]
    assert len(keys) == sum(1 + 2 * (size[0] - 1) for size in sizes)
    for key in keys:
        kernel = key.removesuffix("biases") + (
            "depthwise_weights" if "dw_conv" in key else "weights"
        )
        assert np.abs(results[key]).max() < 1e-4 * np.abs(results[kernel]).max(), key


@pytest.mark.parametrize("matrices", [False, True])
def test_spectrograms_and_coefficients_of_synthetic_clips_match_the_original(
    case: ParityCase, matrices: bool
) -> None:
    audio = made_audio(case)
    matches = [matched for key in case.meta["results"] if (matched := FRONT_END.fullmatch(key))]
    for matched in matches:
        clip, window, stride = (int(matched[group]) for group in (1, 2, 3))
        module = (
            PowerSpectrogram(window_samples=window, stride_samples=stride, matrices=matrices)
            if matched[4] is None
            else Mfcc(
                window_samples=window,
                stride_samples=stride,
                coefficients=int(matched[4]),
                matrices=matrices,
            )
        )
        assert case.check(matched[0], module(audio[clip : clip + 1])[0].numpy()), matched[0]
    assert matches


def test_published_networks_give_the_originals_activations(
    case: ParityCase, published: Path
) -> None:
    result: Results = {}
    keys = {key for key in case.meta["results"] if FROZEN.match(key)}
    pairs = {(matched[1], matched[2]) for key in keys if (matched := FROZEN.match(key))}
    if not pairs:
        pytest.skip("the fixture has no activations of the published networks")
    for size in sorted({size for size, _ in pairs}):
        model = frozen(published, size)
        for clip in sorted(clip for of, clip in pairs if of == size):
            prefix = f"frozen_{size}/{clip}"
            audio = recording(published, clip)
            coefficients = Mfcc()(audio)
            result[f"{prefix}/audio"] = audio[0].numpy()
            result[f"{prefix}/mfcc"] = coefficients[0].numpy()
            with torch.no_grad():
                maps = model.first(coefficients[:, None])
                pooled = model.blocks(maps).mean((2, 3))
                logits = model(coefficients)
            result[f"{prefix}/conv_1"] = channels_at_the_end(maps)[0]
            result[f"{prefix}/avg_pool"] = pooled.numpy()
            result[f"{prefix}/logits"] = logits[0].numpy()
            result[f"{prefix}/softmax"] = logits[0].softmax(-1).numpy()
    assert keys <= set(result)
    for key in keys:
        assert case.check(key, result[key]), key


@pytest.mark.parametrize("size", list(SIZES))
def test_published_networks_score_recordings_like_tensorflow(published: Path, size: str) -> None:
    expected = json.loads((published / "expected_tf1.15.json").read_text())["models"]
    model = frozen(published, size)
    for clip in CLIPS:
        with torch.no_grad():
            scores = model(Mfcc()(recording(published, clip)))[0].softmax(-1).numpy()
        stored = expected[f"DS_CNN_{size}.pb"]["softmax"][clip]
        np.testing.assert_allclose(scores, stored, rtol=0, atol=1e-4)


def test_variables_match_the_original_in_order(case: ParityCase) -> None:
    for size in case.meta["variables"]:
        model = DSCNN(
            num_labels=case.config["label_count"], size=case.config["model_size_info"][size]
        )
        originals = [(name, tuple(shape)) for name, shape, *_ in case.meta["variables"][size]]
        state = model.state_dict()
        ours = [
            (variable.tf_name, variable.to_tensorflow(state[variable.name]).shape)
            for variable in tf_variables(model)
        ]
        assert ours == originals


def test_published_sizes_match_the_original(case: ParityCase) -> None:
    for size, published in SIZES.items():
        assert list(published) == case.config["model_size_info"].get(size, list(published))
