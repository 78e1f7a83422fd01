"""A VQ-VAE with the prior of its codes: what is frozen, what is computed in float32, its names."""

import pytest
import torch

from jumar.models import pixelcnn, vqvae
from jumar.models.code_prior import CodePrior, tf_names
from jumar.models.code_sampling import sample_codes
from jumar.models.pixelcnn import PixelCNN
from jumar.models.vqvae import VQVAE


def model(classes: int = 0) -> CodePrior:
    torch.manual_seed(0)
    made = CodePrior(
        VQVAE(variant="cifar10", codes=6, width=4),
        PixelCNN(codes=6, width=4, layers=2, maps=4, classes=classes),
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(0.5 * torch.randn_like(parameter))
    return made.eval()


def test_codebook_is_frozen_and_the_prior_is_not() -> None:
    made = model()
    assert {name for name, p in made.named_parameters() if not p.requires_grad} == {
        f"vqvae.{name}" for name, _ in made.vqvae.named_parameters()
    }


def test_codes_in_mixed_precision_equal_those_of_float32() -> None:
    made = model()
    images = torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = made.vqvae.nearest(made.vqvae.encode(images))
    assert len(expected.unique()) > 1
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = made.codes(images)
    assert torch.equal(result, expected)
    assert torch.equal(made.codes(images.double()), expected)


def test_logits_follow_from_the_codes_vectors() -> None:
    made = model(classes=3)
    codes = torch.randint(0, 6, (2, 3, 4), generator=torch.Generator().manual_seed(2))
    labels = torch.tensor([0, 2])
    vectors = made.vqvae.codebook[codes.flatten()].view(2, 3, 4, 4).permute(0, 3, 1, 2)
    torch.testing.assert_close(made(codes, labels), made.prior(vectors, labels))


def test_images_are_decoded_from_the_codes_drawn_for_their_indices() -> None:
    made = model(classes=3)
    labels = torch.tensor([2, 0, 1])
    options = {"seed": 5, "first_row": 7, "labels": labels, "temperature": 0.5}
    codes = sample_codes(made.prior, made.vqvae.codebook, rows=3, height=4, width=4, **options)
    result = made.draw(rows=3, image_size=16, **options)
    assert result.shape == (3, 3, 16, 16)
    assert not result.requires_grad
    torch.testing.assert_close(result, made.vqvae.decode(made.vqvae.vectors(codes)))
    plain = made.draw(rows=3, image_size=16, seed=5, labels=labels)
    first = sample_codes(
        made.prior,
        made.vqvae.codebook,
        rows=3,
        height=4,
        width=4,
        seed=5,
        first_row=0,
        labels=labels,
        temperature=1.0,
    )
    torch.testing.assert_close(plain, made.vqvae.decode(made.vqvae.vectors(first)))
    assert not torch.equal(plain, result)


@pytest.mark.parametrize("classes", [0, 3])
def test_names_are_those_of_both_checkpoints_under_their_part(classes: int) -> None:
    made = model(classes)
    names = tf_names(made)
    both = (("vqvae", vqvae.tf_names(made.vqvae)), ("prior", pixelcnn.tf_names(made.prior)))
    assert [(v.tf_name, v.name) for v in names.variables] == [
        (v.tf_name, f"{part}.{v.name}") for part, of_part in both for v in of_part.variables
    ]
    assert sorted(v.name for v in names.variables) == sorted(made.state_dict())
    assert names.averages == "none"
    assert names.renamings == [(r"^(?:[^/]+/)?params/", "train/params/")]
    bias = "V" if classes else "b"
    scopes = [("v_stack0", "v_stack_10"), ("h_stack0", "h_stack_10")]
    expected = [
        f"pixelcnn/{name}"
        for gated, plain in scopes
        for name in (
            *(f"{gated}/{part}_W" for part in "vh"),
            *(f"{gated}/{part}_{bias}" for part in "vh"),
            f"{plain}/W",
            f"{plain}/b",
        )
    ]
    of_prior = [v.tf_name for v in names.variables if v.name.startswith("prior.")]
    assert of_prior[:12] == expected
    assert of_prior[-4:] == [
        f"pixelcnn/{name}/{part}" for name in ("fc_1", "fc_2") for part in "Wb"
    ]
