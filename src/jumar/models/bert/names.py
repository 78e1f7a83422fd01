"""Names of the variables in google-research/bert, NEZHA and Ascend's copies of them.

Our names are those of the `state_dict` that Hugging Face's BERT classes have, which other PyTorch
code reads as it is. There is no network here: which variables there are (layers, heads, NEZHA's
missing position table) is read from the names themselves, in either direction.
"""

import re
from collections.abc import Iterable

from jumar.models.tf_layout import TfNames, TfVariable, Unchanged, dense_variables

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
    """The variables of the BERT or NEZHA whose names these are, and where they go.

    What belongs together is expected together: a layer of which a bias is missing is a layer
    with a missing bias, and not a layer without.

    Args:
        file_names: Names in a TensorFlow file, or of a `state_dict` made from one.
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
            _plain("cls/predictions/output_bias", "cls.predictions.bias"),
        ],
        _head("cls/seq_relationship/", "cls.seq_relationship"),
        _head("cls/squad/", "qa_outputs"),
        _head("", "classifier"),
    ):
        variables += _if_any(group, names)
    # Ascend's scripts keep sums of gradients under /accum and copies of weights under /shadow.
    return TfNames(variables=variables, averages="none", ignored=(r"/(accum|shadow)(_\d+)?$",))


def _if_any(group: list[TfVariable], names: "set[str]") -> list[TfVariable]:
    """The whole group where any of it is there."""
    return group if any({v.tf_name, v.name} & names for v in group) else []


def _part(scope: str, name: str = "") -> list[TfVariable]:
    """A dense layer or a layer norm."""
    name = name or scope.replace("/", ".")
    if not scope.endswith("LayerNorm"):
        return dense_variables(scope, name)
    return [_plain(f"{scope}/gamma", f"{name}.weight"), _plain(f"{scope}/beta", f"{name}.bias")]


def _table(kind: str) -> list[TfVariable]:
    table = f"{kind}_embeddings"
    return [_plain(f"bert/embeddings/{table}", f"bert.embeddings.{table}.weight")]


def _head(scope: str, name: str) -> list[TfVariable]:
    """A last layer: [classes, hidden], as torch has it, since the original transposes it."""
    return [
        _plain(f"{scope}output_weights", f"{name}.weight"),
        _plain(f"{scope}output_bias", f"{name}.bias"),
    ]


def _plain(tf_name: str, name: str) -> TfVariable:
    return TfVariable(tf_name=tf_name, name=name, layout=Unchanged())
