"""The networks that can be exported, and their parts."""

from collections.abc import Callable, Mapping

from jumar.ground.errors import UserError
from jumar.recipes.bert import PretrainingRecipe
from jumar.recipes.bert_tasks import BertTaskRecipe
from jumar.recipes.biggan128 import GenerationRecipe
from jumar.recipes.classification import ClassificationRecipe
from jumar.recipes.denoising import DenoisingRecipe
from jumar.recipes.ds_cnn import KeywordRecipe
from jumar.recipes.east import EastRecipe
from jumar.recipes.psenet import PSENetRecipe
from jumar.recipes.recipe import Recipe
from jumar.recipes.trained import Trained
from jumar.recipes.vqvae import VQVAERecipe
from jumar.recipes.vqvae_prior import VQVAEPriorRecipe
from jumar.runs.exporting.network import Exportable
from jumar.runs.exporting.other_inputs import generator, listener, text_encoder, text_head
from jumar.runs.exporting.pictures import classifier, decoder, denoiser, detector, encoder

Parts = Mapping[str, Callable[[Trained], Exportable]]

_FAMILIES: Mapping[type[Recipe], Parts] = {
    ClassificationRecipe: {"": classifier},
    KeywordRecipe: {"": listener},
    DenoisingRecipe: {"": denoiser},
    PSENetRecipe: {"": detector},
    EastRecipe: {"": detector},
    BertTaskRecipe: {"": text_head},
    PretrainingRecipe: {"": text_encoder},
    GenerationRecipe: {"generator": generator},
    VQVAERecipe: {"encoder": encoder, "decoder": decoder},
}
_REASONS: Mapping[type[Recipe], str] = {
    VQVAEPriorRecipe: "generates images code by code, each step another pass; export the VQ-VAE "
    "of its first stage (--part decoder), and draw codes with `jumar generate`",
}


def parts_of(recipe: Recipe) -> Parts:
    """Return the parts of a recipe's network that can be exported; empty if there are none."""
    return next((parts for kind, parts in _FAMILIES.items() if isinstance(recipe, kind)), {})


def check_part(recipe: Recipe, name: str, part: str) -> str:
    """Return the part to export: the named one, or the only one.

    Args:
        recipe: A run's recipe.
        name: Its name.
        part: The part that the user names; may be empty.

    Raises:
        UserError: The network has no such part, or several parts and none is named.
    """
    parts = parts_of(recipe)
    if not parts:
        reason = next((text for kind, text in _REASONS.items() if isinstance(recipe, kind)), "")
        raise UserError(
            f"a network of '{name}' cannot be exported as a graph",
            todo=f"It {reason}." if reason else "Its weights can: --to FILE.safetensors",
        )
    if not part and len(parts) == 1:
        return next(iter(parts))
    if part not in parts:
        options = " or ".join(f"--part {option}" for option in parts if option)
        problem = (
            f"has no part '{part}'"
            if part
            else "has several parts, only one of which can be exported at a time"
        )
        todo = f"Write {options}." if options else "Omit --part."
        raise UserError(f"a network of '{name}' {problem}", where="--part", todo=todo)
    return part
