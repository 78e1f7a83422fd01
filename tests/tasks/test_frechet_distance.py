import math
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from jumar.ground.errors import UserError
from jumar.models.inception import FidInception
from jumar.tasks.frechet_distance import frechet_distance, open_inception

linalg = pytest.importorskip("scipy.linalg")


def features(count: int, width: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(width, width, generator=generator) / width**0.5
    return torch.randn(count, width, generator=generator) @ mixing + seed / 10


def by_matrix_root(real: Tensor, fake: Tensor) -> float:
    first, second = real.double().numpy(), fake.double().numpy()
    one, two = (np.cov(rows, rowvar=False) for rows in (first, second))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = linalg.sqrtm(one @ two)
    apart = np.square(first.mean(axis=0) - second.mean(axis=0)).sum()
    return float(apart + np.trace(one) + np.trace(two) - 2 * np.trace(np.real(root)))


@pytest.mark.parametrize(("count", "other"), [(400, 300), (100, 90)])
def test_distance_matches_scipys_matrix_root(count: int, other: int) -> None:
    real, fake = features(count, 32, 1), features(other, 32, 2)
    assert frechet_distance(real, fake) == pytest.approx(by_matrix_root(real, fake), rel=1e-9)


def test_fewer_images_than_features_are_supported() -> None:
    real, fake = features(20, 48, 1), features(30, 48, 2)
    # The root of a singular product is exact to the root of the rounding error only.
    assert frechet_distance(real, fake) == pytest.approx(by_matrix_root(real, fake), rel=1e-5)


def test_distances_match_known_values() -> None:
    real = features(500, 8, 3)
    assert frechet_distance(real, real) < 1e-9
    assert frechet_distance(real, real + 2) == pytest.approx(8 * 4)
    spread = 3 * (real - real.mean(dim=0)) + real.mean(dim=0)
    trace = float(np.trace(np.cov(real.double().numpy(), rowvar=False)))
    assert frechet_distance(real, spread) == pytest.approx((3 - 1) ** 2 * trace, rel=1e-6)


def test_order_of_sets_and_rows_does_not_matter() -> None:
    real, fake = features(60, 16, 1), features(70, 16, 2)
    distance = frechet_distance(real, fake)
    assert frechet_distance(fake, real) == pytest.approx(distance, rel=1e-12)
    assert frechet_distance(real.flip(0), fake) == pytest.approx(distance, rel=1e-12)


def test_non_finite_features_give_no_number() -> None:
    real = features(10, 4, 1)
    assert math.isnan(frechet_distance(real, real.clone().fill_(math.inf)))


def test_sets_without_covariance_are_refused() -> None:
    with pytest.raises(ValueError, match="two rows"):
        frechet_distance(torch.zeros(1, 4), torch.zeros(9, 4))
    with pytest.raises(ValueError, match=r"\[N, D\]"):
        frechet_distance(torch.zeros(3, 4), torch.zeros(3, 5))


@pytest.fixture(scope="module")
def weights() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return {**FidInception().state_dict(), "fc.weight": torch.zeros(1008, 2048)}


def test_weights_are_read_from_either_kind_of_file(
    tmp_path: Path, weights: dict[str, Tensor]
) -> None:
    without_counters = {
        name: value for name, value in weights.items() if "num_batches_tracked" not in name
    }
    torch.save(without_counters, tmp_path / "inception.pth")
    save_file(weights, tmp_path / "inception.safetensors")
    for name in ("inception.pth", "inception.safetensors"):
        network = open_inception(tmp_path / name)
        assert not network.training
        assert not any(parameter.requires_grad for parameter in network.parameters())
        assert all(torch.equal(v, weights[k]) for k, v in network.state_dict().items())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fc.weight": torch.zeros(1000, 2048)}, "torchvision's ImageNet network"),
        ({"AuxLogits.fc.weight": torch.zeros(1)}, "torchvision's ImageNet network"),
        ({"Mixed_8a.conv.weight": torch.zeros(1)}, r"unknown Mixed_8a\.conv\.weight"),
        ({"Mixed_7c.branch_pool.bn.bias": torch.zeros(3)}, r"is \[3\] instead of \[192\]"),
        ({"Mixed_7c.branch_pool.bn.bias": None}, r"lacks Mixed_7c\.branch_pool\.bn\.bias"),
    ],
)
def test_another_network_is_refused(
    tmp_path: Path, weights: dict[str, Tensor], change: dict[str, Tensor | None], message: str
) -> None:
    path = tmp_path / "inception.pth"
    changed = {**weights, **change}
    # Zeros stand for the large ones: only names and shapes are looked at.
    small = {
        name: torch.zeros(()).expand(value.shape)
        for name, value in changed.items()
        if value is not None
    }
    torch.save(small, path)
    with pytest.raises(UserError, match=message):
        open_inception(path)


@pytest.mark.parametrize("name", ["inception.pth", "inception.safetensors"])
def test_missing_or_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(UserError, match="does not exist"):
        open_inception(path)
    for content in (b"", b"no weights at all", bytes(range(256)) * 40):
        path.write_bytes(content)
        with pytest.raises(UserError, match="cannot be read"):
            open_inception(path)


def test_file_that_would_run_code_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "inception.pth"
    torch.save({"weights": Path}, path)
    with pytest.raises(UserError, match="cannot be read"):
        open_inception(path)
    torch.save([1, 2], path)
    with pytest.raises(UserError, match="no weights by name"):
        open_inception(path)


WANTED = (
    "Use pytorch-fid's pt_inception-2015-12-05-6726825d.pth, or the same weights as .safetensors."
)


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as error:
        open_inception(path)
    assert WANTED in str(error.value)
    assert str(path) in str(error.value)
    return str(error.value)


def test_file_errors_are_reported_once_with_the_number_of_others(tmp_path: Path) -> None:
    path = tmp_path / "inception.pth"
    with torch.device("meta"):
        expected = FidInception().state_dict()
    small = {name: torch.zeros(()).expand(value.shape) for name, value in expected.items()}

    def saved(changes: dict[str, Tensor | None]) -> Path:
        changed = {**small, **changes}
        torch.save({name: value for name, value in changed.items() if value is not None}, path)
        return path

    bias, weight = (f"Conv2d_1a_3x3.bn.{part}" for part in ("bias", "weight"))
    message = refusal(saved({weight: None}))
    assert f"is not the FID network: it lacks {weight}\n" in message
    message = refusal(saved({weight: None, bias: None}))
    assert f"is not the FID network: it lacks {weight} and 1 more\n" in message
    message = refusal(saved({"x": torch.zeros(1), "y": torch.zeros(1), "z": torch.zeros(1)}))
    assert "is not the FID network: it has the unknown x and 2 more\n" in message
    message = refusal(saved({bias: torch.zeros(3), weight: torch.zeros(2, 1)}))
    assert f"it differs: {weight} is [2, 1] instead of [32] and 1 more\n" in message
    message = refusal(saved({"fc.weight": torch.zeros(1000, 2)}))
    assert "contains torchvision's ImageNet network, not the FID network" in message
    torch.save([1], path)
    assert "contains no weights by name" in refusal(path)
    path.write_bytes(b"")
    assert "cannot be read as weights (" in refusal(path)
    path.unlink()
    assert "the file of Inception weights does not exist" in refusal(path)


def test_half_precision_is_read_as_float32_and_logits_are_skipped(tmp_path: Path) -> None:
    with torch.device("meta"):
        expected = FidInception().state_dict()
    half = {
        name: torch.full((), 0.5, dtype=torch.float16).expand(value.shape)
        for name, value in expected.items()
        if not name.endswith("num_batches_tracked")
    }
    for bias in (torch.zeros(1008), torch.zeros(3)):
        torch.save({**half, "fc.bias": bias}, tmp_path / "inception.pth")
        state = open_inception(tmp_path / "inception.pth").state_dict()
        assert list(state) == list(expected)
        for name, value in state.items():
            counted = name.endswith("num_batches_tracked")
            assert value.dtype == (torch.int64 if counted else torch.float32), name
            assert (value == (0 if counted else 0.5)).all(), name


def test_two_rows_suffice_and_mismatched_shapes_are_named() -> None:
    real = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
    fake = torch.tensor([[3.0, 1.0], [3.0, 5.0]])
    # Means (1, 0) and (3, 3); covariances diag(2, 0) and diag(0, 8).
    assert frechet_distance(real, fake) == pytest.approx(4 + 9 + 2 + 8)
    assert frechet_distance(real, real + 1) == pytest.approx(2)
    for one, other in ((real, fake[0]), (real[0], fake), (real, fake[:, :1])):
        with pytest.raises(ValueError, match="features must be") as error:
            frechet_distance(one, other)
        assert str(error.value) == (
            f"features must be [N, D], not {list(one.shape)} and {list(other.shape)}"
        )
    with pytest.raises(ValueError, match="at least two rows"):
        frechet_distance(real, fake[:1])
    wrong = torch.tensor([[0.0, math.nan], [1.0, 1.0]])
    assert math.isnan(frechet_distance(wrong, real))
    assert math.isnan(frechet_distance(real, wrong))
