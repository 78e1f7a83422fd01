"""Entities in tagged sentences, and precision, recall and F1 of whole entities.

CoNLL's evaluation and the default mode of seqeval count an entity as correct if its type, start and
end are correct; in seqeval's strict mode, its tags must also follow a scheme. A tag is `O`, or a
prefix B, I, M, E or S with a hyphen and a type; M is another name for I.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from jumar.ground.errors import UserError
from jumar.tasks.scoring.rates import Rates

OUTSIDE = "O"
PREFIXES = ("B", "I", "M", "E", "S")

Scheme = Literal["IOB2", "IOBES"]

_PREFIXES_OF: Mapping[Scheme, Sequence[str]] = {
    "IOB2": (OUTSIDE, "B", "I"),
    "IOBES": (OUTSIDE, "B", "I", "E", "S"),
}
_CHOOSE_ANOTHER = (
    "IOB2 has the tags O, B- and I-, and IOBES also E- and S-. Choose the scheme of the data, or "
    "conll, which needs none."
)


class Entity(NamedTuple):
    """An entity: its type, and its first and last token."""

    kind: str
    first: int
    last: int


def entities(tags: Sequence[str]) -> list[Entity]:
    """Return the entities of a sentence, even if tags do not follow their scheme.

    An inner tag continues an entity of its type, or starts one if there is none.
    """
    spans: list[Entity] = []
    previous_prefix, previous_kind = OUTSIDE, ""
    for index, tag in enumerate(tags):
        prefix, kind = split_tag(tag)
        if previous_prefix in ("B", "I") and prefix in ("I", "E") and kind == previous_kind:
            spans[-1] = spans[-1]._replace(last=index)
        elif prefix != OUTSIDE:
            spans.append(Entity(kind, index, index))
        previous_prefix, previous_kind = prefix, kind
    return spans


def strict_entities(tags: Sequence[str], scheme: Scheme) -> list[Entity]:
    """Return the entities whose tags all follow the scheme."""
    spans: list[Entity] = []
    split_tags = [split_tag(tag) for tag in tags]
    for span in entities(tags):
        prefixes = "".join(prefix for prefix, _ in split_tags[span.first : span.last + 1])
        inner_prefixes = prefixes[1:] if scheme == "IOB2" else prefixes[1:-1]
        is_delimited = (
            prefixes[0] == "B" if scheme == "IOB2" else prefixes in ("S", f"B{inner_prefixes}E")
        )
        if is_delimited and not inner_prefixes.strip("I"):
            spans.append(span)
    return spans


def check_scheme(
    scheme: Scheme, labels: Sequence[str], sentences: Iterable[Sequence[str]]
) -> tuple[int, int]:
    """Check that strict scores of some sentences mean something.

    Args:
        scheme: The scheme.
        labels: The tags that a network can predict.
        sentences: The true tags.

    Returns:
        How many entities do not follow the scheme, so that they do not count, and how many there
        are.

    Raises:
        UserError: A tag is not one of the scheme, for which seqeval fails too, or no entity follows
            it, for which seqeval returns 0.
    """
    for label in labels:
        if split_tag(label)[0] not in _PREFIXES_OF[scheme]:
            raise UserError(
                f"the tag '{label}' is not one of {scheme}",
                where="data.scoring",
                todo=_CHOOSE_ANOTHER,
            )
    total = following = 0
    for tags in sentences:
        total += len(entities(tags))
        following += len(strict_entities(tags, scheme))
    if total and not following:
        raise UserError(
            f"no entity of the evaluation data follows {scheme}",
            where="data.scoring",
            todo=_CHOOSE_ANOTHER,
        )
    return total - following, total


def split_tag(tag: str) -> tuple[str, str]:
    """Return the prefix of a tag, with I for M, and its type."""
    prefix, _, kind = tag.partition("-")
    return ("I" if prefix == "M" else prefix), kind


@dataclass(kw_only=True)
class EntityCounts:
    """The numbers of correct, predicted and true entities by type."""

    right: Counter[str] = field(default_factory=Counter[str])
    predicted: Counter[str] = field(default_factory=Counter[str])
    true: Counter[str] = field(default_factory=Counter[str])

    def add(self, truth: Iterable[Entity], prediction: Iterable[Entity]) -> None:
        """Count the entities of one sentence."""
        truth, prediction = set(truth), set(prediction)
        self.true.update(entity.kind for entity in truth)
        self.predicted.update(entity.kind for entity in prediction)
        self.right.update(entity.kind for entity in truth & prediction)

    def total(self) -> Rates:
        """Return the rates of all entities together (micro average)."""
        return Rates.of(self.right.total(), self.predicted.total(), self.true.total())

    def by_type(self) -> Mapping[str, Rates]:
        """Return the rates of each type that occurs in the data or in the predictions."""
        return {
            kind: Rates.of(self.right[kind], self.predicted[kind], self.true[kind])
            for kind in sorted(self.true | self.predicted)
        }
