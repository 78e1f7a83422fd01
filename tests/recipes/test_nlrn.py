"""NLRN's recipes: the original's numbers, whole images in patches."""

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.models.nlrn import NLRN
from jumar.models.tiling import patch_starts
from jumar.recipes.denoising import DenoisingRecipe
from jumar.recipes.registry import create_recipe
from jumar.settings import override
from jumar.training.schedules import learning_rate


def test_learning_rate_halves_at_the_originals_steps() -> None:
    recipe = create_recipe("nlrn")
    assert isinstance(recipe, DenoisingRecipe)
    rates = {
        step: learning_rate(recipe.schedule, 1e-3, step, steps_per_epoch=25, total_steps=500_000)
        for boundary in (100_000, 200_000, 300_000, 400_000, 450_000)
        for step in (boundary, boundary + 1)
    }
    expected = 1e-3
    for step, rate in rates.items():
        if step % 10:
            expected /= 2
        assert rate == pytest.approx(expected), step


def test_whole_images_are_averaged_from_the_originals_patches() -> None:
    recipe = override(create_recipe("nlrn"), ["model.steps=1", "model.filters=2"])
    assert isinstance(recipe, DenoisingRecipe)
    network = recipe.build_model().eval()
    assert isinstance(network, NLRN)
    torch.nn.init.normal_(network.recurrence.non_local.g.weight)
    picture = torch.rand(1, 1, 50, 45)
    total, times = torch.zeros_like(picture), torch.zeros_like(picture)
    with torch.no_grad():
        for top in patch_starts(50, 43, 7):
            for left in patch_starts(45, 43, 7):
                place = (..., slice(top, top + 43), slice(left, left + 43))
                total[place] += network(picture[place])
                times[place] += 1
        result = recipe.model.denoiser(network)(picture)
    torch.testing.assert_close(result, total / times, rtol=1e-5, atol=1e-6)


def test_gaps_between_patches_and_colour_are_refused() -> None:
    with pytest.raises(UserError, match="leave gaps"):
        override(create_recipe("nlrn"), ["model.stride=44"])
    with pytest.raises(UserError, match=r"set data\.channels=grey"):
        override(create_recipe("nlrn"), ["data.channels=colour"]).build_model()
