"""The Frechet Inception distance (FID), for users who have the weights of its network.

M. Heusel et al., "GANs Trained by a Two Time-Scale Update Rule Converge to a Local Nash
Equilibrium" (2017): the distance between two normal distributions with the means and covariances of
the features of real and generated images.

Verified: the distance, against scipy's matrix square root of the product of the covariances, which
is how pytorch-fid computes it; `FidInception`, against the same network in torch-fidelity (commit
5e211a9) with random weights: all 564 names and shapes are equal, and the features bit for bit.
Not verified: the published weights, and therefore any published FID, because the weights could not
be downloaded during development.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file
from torch import Tensor

from jumar.ground.errors import UserError
from jumar.models.inception import FidInception

_LOGITS = 1008
_REQUIRED = (
    "Use pytorch-fid's pt_inception-2015-12-05-6726825d.pth, or the same weights as .safetensors."
)


def open_inception(path: Path) -> FidInception:
    """Load the FID network with the weights in a file, in evaluation mode, on the CPU.

    Args:
        path: pytorch-fid's file, or its tensors as `.safetensors`. Weights of the logits are
            ignored, and nothing in the file is executed.

    Raises:
        UserError: The file is missing, damaged, or contains the weights of another network.
    """
    weights = _read_weights(path)
    logits = weights.get("fc.weight")
    if any(name.startswith("AuxLogits.") for name in weights) or (
        logits is not None and len(logits) != _LOGITS
    ):
        # Names and shapes are equal up to the features, but the FID would not be comparable.
        raise UserError(
            "contains torchvision's ImageNet network, not the FID network",
            where=str(path),
            todo=_REQUIRED,
        )
    with torch.device("meta"):
        # Initialising 22 million parameters, only to overwrite them, would take seconds.
        network = FidInception()
    expected = network.state_dict()
    weights_by_name = {name: value for name, value in weights.items() if not name.startswith("fc.")}
    _check_fits(weights_by_name, expected, path)
    # Older files lack the batch counters, which evaluation does not use.
    counters = {
        name: torch.zeros((), dtype=torch.int64) for name in expected if name not in weights_by_name
    }
    floats = {
        name: v.float() if v.is_floating_point() else v for name, v in weights_by_name.items()
    }
    network.load_state_dict({**floats, **counters}, assign=True)
    return network.eval().requires_grad_(requires_grad=False)


def frechet_distance(real: Tensor, fake: Tensor) -> float:
    """Return |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)) for the means and covariances of two sets.

    With A and B, the centred features divided by the square root of N - 1 and M - 1, the
    covariances are A'A and B'B, and the trace of the root is the sum of the singular values of AB'.
    This avoids the root of a matrix that is singular for fewer images than features, where the
    usual method adds a small diagonal and drops imaginary parts.

    Args:
        real: Features [N, D], at least two rows.
        fake: Features [M, D], at least two rows. The distance grows as the number of rows
            decreases: only compare results for equally large sets.

    Returns:
        The distance, computed in float64; NaN if a feature is not finite.

    Raises:
        ValueError: The sets have different or invalid shapes.
    """
    if real.ndim != 2 or fake.ndim != 2 or real.shape[1] != fake.shape[1]:
        raise ValueError(f"features must be [N, D], not {list(real.shape)} and {list(fake.shape)}")
    if min(len(real), len(fake)) < 2:
        raise ValueError("a covariance needs at least two rows of features")
    (mean, rows), (fake_mean, fake_rows) = _centred(real), _centred(fake)
    if not (rows.isfinite().all() and fake_rows.isfinite().all()):
        return float("nan")
    traces = rows.square().sum() + fake_rows.square().sum()
    trace_of_root = torch.linalg.svdvals(_reduced(rows) @ _reduced(fake_rows).T).sum()
    distance = (mean - fake_mean).square().sum() + traces - 2 * trace_of_root
    # Rounding puts two equal sets about 1e-12 below or above 0.
    return max(float(distance), 0.0)


def _centred(features: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean, and a matrix A such that A'A is the unbiased covariance."""
    values = features.detach().to("cpu", torch.float64)
    mean = values.mean(dim=0)
    return mean, (values - mean) / (len(values) - 1) ** 0.5


def _reduced(rows: Tensor) -> Tensor:
    """Return a matrix R with at most as many rows as columns and with R'R = A'A for the rows A."""
    if rows.shape[0] <= rows.shape[1]:
        return rows
    return torch.linalg.qr(rows, mode="r").R


def _read_weights(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise UserError(
            "the file of Inception weights does not exist", where=str(path), todo=_REQUIRED
        ) from error
    except Exception as error:
        # The readers of zip, pickle and safetensors raise many kinds of errors for damaged files.
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UserError(
            f"cannot be read as weights ({reason})", where=str(path), todo=_REQUIRED
        ) from error
    if not isinstance(content, Mapping):
        raise UserError("contains no weights by name", where=str(path), todo=_REQUIRED)
    tensors = cast("Mapping[Any, Any]", content)
    return {str(name): value for name, value in tensors.items() if isinstance(value, Tensor)}


def _check_fits(
    weights_by_name: Mapping[str, Tensor], expected: Mapping[str, Tensor], path: Path
) -> None:
    missing_names = [
        name
        for name in expected
        if name not in weights_by_name and not name.endswith("num_batches_tracked")
    ]
    unknown_names = [name for name in weights_by_name if name not in expected]
    shapes = [
        f"{name} is {list(weights_by_name[name].shape)} instead of {list(value.shape)}"
        for name, value in expected.items()
        if name in weights_by_name and weights_by_name[name].shape != value.shape
    ]
    for fault, names in (
        ("lacks", missing_names),
        ("has the unknown", unknown_names),
        ("differs:", shapes),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise UserError(
                f"is not the FID network: it {fault} {names[0]}{more}",
                where=str(path),
                todo=_REQUIRED,
            )
