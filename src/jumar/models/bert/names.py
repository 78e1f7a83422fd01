"""Names of the variables in google-research/bert, NEZHA and Ascend's copies of them.

Our names are those in the `state_dict` of Hugging Face's BERT classes, which other PyTorch code can
load directly. There is no network here: which variables exist (layers, heads, NEZHA's missing
position table) is inferred from the names themselves, in either direction.
"""

import re
from collections.abc import Iterable

from jumar.models.tf_layout import TfNames, TfVariable, dense_variables, unchanged

_LAYER = re.compile(r"^bert(?:/encoder/layer_|\.encoder\.layer\.)(\d{1,4})[/.]")
_PARTS_OF_A_LAYER = (
    "attention/self/query",
    "attention/self/key",
    "attention/self/value",
    "attention/output/dense",
    "attention/output/LayerNorm",
    "intermediate/dense",
    "output/dense",
    "output/LayerNorm",
)


def tf_names(file_names: Iterable[str]) -> TfNames:
    """The variables of the BERT or NEZHA network with these names, with their names here.

    Related variables are expected together: a layer without its bias counts as a layer with a
    missing bias, not as a layer without one.

    Args:
        file_names: Names in a TensorFlow file, or in a `state_dict` made from one.
    """
    names = set(file_names)
    variables = [*_table("word"), *_part("bert/embeddings/LayerNorm")]
    for group in (_table("token_type"), _table("position")):
        variables += _if_any(group, names)
    for layer in sorted({int(match[1]) for name in names if (match := _LAYER.match(name))}):
        for part in _PARTS_OF_A_LAYER:
            scope = f"bert/encoder/layer_{layer}/{part}"
            variables += _part(scope, f"bert.encoder.layer.{layer}.{part.replace('/', '.')}")
    transform = "cls/predictions/transform"
    for group in (
        _part("bert/pooler/dense"),
        [
            *_part(f"{transform}/dense"),
            *_part(f"{transform}/LayerNorm"),
            unchanged("cls/predictions/output_bias", "cls.predictions.bias"),
        ],
        _head("cls/seq_relationship/", "cls.seq_relationship"),
        _head("cls/squad/", "qa_outputs"),
        _head("", "classifier"),
    ):
        variables += _if_any(group, names)
    # Ascend's scripts keep sums of gradients under /accum and copies of weights under /shadow.
    return TfNames(variables=variables, averages="none", ignored=(r"/(accum|shadow)(_\d+)?$",))


def _if_any(group: list[TfVariable], names: "set[str]") -> list[TfVariable]:
    """The whole group if any of its variables exists, otherwise nothing."""
    return group if any({v.tf_name, v.name} & names for v in group) else []


def _part(scope: str, name: str = "") -> list[TfVariable]:
    """The variables of a dense layer or a layer norm."""
    name = name or scope.replace("/", ".")
    if not scope.endswith("LayerNorm"):
        return dense_variables(scope, name)
    return [
        unchanged(f"{scope}/gamma", f"{name}.weight"),
        unchanged(f"{scope}/beta", f"{name}.bias"),
    ]


def _table(kind: str) -> list[TfVariable]:
    table = f"{kind}_embeddings"
    return [unchanged(f"bert/embeddings/{table}", f"bert.embeddings.{table}.weight")]


def _head(scope: str, name: str) -> list[TfVariable]:
    """An output layer, [classes, hidden] as in torch, because the original transposes it."""
    return [
        unchanged(f"{scope}output_weights", f"{name}.weight"),
        unchanged(f"{scope}output_bias", f"{name}.bias"),
    ]
