"""What pre-training on a little text is worth: its texts, and the baselines beside it.

    python benchmarks/text_learning.py texts nlp-zh learning    # learning/{pretrain,heldout}/*.txt
    python benchmarks/text_learning.py entropy learning vocab.txt
    python benchmarks/text_learning.py linear nlp-zh

`nlp-zh` is a folder with `pretrain/zhwiki-*.txt`, `chnsenticorp/` and `ner-resume/`.

- texts: every twentieth document of the wiki files is held out; the others, and the texts of the
  two tasks' training files without their labels, are what a network pre-trains on. Texts of the
  evaluation files are in neither.
- entropy: of the held-out word pieces under their own frequencies, and under those of the
  pre-training text, in nats. The latter is the loss of a network that knows frequencies only.
- linear: logistic regression on character n-grams. Opinions: one to three characters, weighted by
  tf-idf. Entities: the n-grams around each character, without and with the tag predicted before
  it, which learns which tags may follow each other.
"""

import argparse
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from jumar.data.text.entity_files import TaggedSentence, read_tagged
from jumar.data.text.numbered_lines import Skipping
from jumar.data.text.sentence_files import Sentence, SentenceData, read_sentences
from jumar.data.text.tokenizer import open_tokenizer
from jumar.tasks.scoring.entities import OUTSIDE, EntityCounts, entities

HELD_OUT = 20
"""One document in so many is held out."""
_SENTENCE = re.compile(r"[^。！？!?；;]+[。！？!?；;]*")
_AROUND = range(-2, 3)


def write_texts(source: Path, target: Path) -> None:
    """Write the pre-training and the held-out text, a sentence a line."""
    for name in ("pretrain", "heldout"):
        (target / name).mkdir(parents=True)
    for wiki in sorted((source / "pretrain").glob("zhwiki-*.txt")):
        articles = wiki.read_text(encoding="utf-8").strip().split("\n\n")
        held_out = articles[::HELD_OUT]
        kept = [text for place, text in enumerate(articles) if place % HELD_OUT]
        (target / "heldout" / wiki.name).write_text("\n\n".join(held_out), encoding="utf-8")
        (target / "pretrain" / wiki.name).write_text("\n\n".join(kept), encoding="utf-8")
        print(f"{wiki.name}: {len(kept)} documents, {len(held_out)} held out")
    reviews = [_lines(sentence.first) for sentence in opinions(source, "train")]
    (target / "pretrain/reviews.txt").write_text("\n\n".join(reviews), encoding="utf-8")
    # A person's sentences stand together in the file, without a line between persons.
    persons = "\n".join("".join(sentence.tokens) for sentence in tagged(source, "train"))
    (target / "pretrain/resumes.txt").write_text(persons, encoding="utf-8")
    print(f"{len(reviews)} reviews, {persons.count(chr(10)) + 1} sentences of resumes")


def _lines(text: str) -> str:
    return "\n".join(part.strip() for part in _SENTENCE.findall(text) if part.strip()) or text


def opinions(source: Path, part: str) -> Sequence[Sentence]:
    """The reviews of ChnSentiCorp with their labels."""
    path = source / f"chnsenticorp/{part}.tsv"
    return list(read_sentences(path, SentenceData(), Skipping(0, print)))


def tagged(source: Path, part: str) -> Sequence[TaggedSentence]:
    """The sentences of Resume NER with their tags."""
    return list(read_tagged(source / f"ner-resume/{part}.txt", Skipping(0, print)))


def print_entropy(texts: Path, vocabulary: Path) -> None:
    """Print how many nats a held-out word piece takes under frequencies alone."""
    tokenizer = open_tokenizer(vocabulary)
    counts = {
        name: Counter(
            piece
            for path in sorted((texts / name).iterdir())
            for piece in tokenizer.ids(path.read_text(encoding="utf-8"))
        )
        for name in ("pretrain", "heldout")
    }
    held_out, train = counts["heldout"], counts["pretrain"]
    # One is added to each count, so that a piece which training lacks is possible.
    pieces = train.total() + len(tokenizer.vocabulary.pieces)
    own = sum(count * math.log(held_out.total() / count) for count in held_out.values())
    other = sum(count * math.log(pieces / (train[piece] + 1)) for piece, count in held_out.items())
    print(f"{train.total()} word pieces to pre-train on, {held_out.total()} held out")
    print(f"entropy of the held-out text: {own / held_out.total():.3f} nats")
    print(f"under the frequencies of the pre-training text: {other / held_out.total():.3f} nats")


def print_linear(source: Path) -> None:
    """Train and score both linear models."""
    train, evaluation = opinions(source, "train"), opinions(source, "dev")
    grams = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), min_df=2, sublinear_tf=True)
    model = LogisticRegression(C=10, max_iter=1000)
    model.fit(grams.fit_transform([row.first for row in train]), [row.label for row in train])
    accuracy = model.score(
        grams.transform([row.first for row in evaluation]), [row.label for row in evaluation]
    )
    print(f"opinions: accuracy {100 * accuracy:.2f}", flush=True)
    for chained in (False, True):
        counts = EntityCounts()
        for truth, prediction in _tagged_by_regression(
            tagged(source, "train"), tagged(source, "dev"), chained=chained
        ):
            counts.add(entities(truth), entities(prediction))
        how = "and the tag before" if chained else "alone"
        print(f"entities, n-grams {how}: F1 {100 * counts.total().f1:.2f}", flush=True)


def _tagged_by_regression(
    train: Iterable[TaggedSentence], evaluation: Iterable[TaggedSentence], *, chained: bool
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """The true and the predicted tags of each sentence to evaluate on."""
    rows: list[dict[str, str]] = []
    tags: list[str] = []
    for sentence in train:
        for place, tag in enumerate(sentence.tags):
            before = sentence.tags[place - 1] if place else OUTSIDE
            rows.append(_features(sentence.tokens, place, before if chained else ""))
            tags.append(tag)
    vectorizer = DictVectorizer()
    model = LogisticRegression(C=10, max_iter=200).fit(vectorizer.fit_transform(rows), tags)
    for sentence in evaluation:
        predicted: list[str] = []
        for place in range(len(sentence.tokens)):
            before = predicted[-1] if predicted else OUTSIDE
            row = vectorizer.transform(
                [_features(sentence.tokens, place, before if chained else "")]
            )
            predicted.append(str(model.predict(row)[0]))
        yield sentence.tags, predicted


def _features(tokens: Sequence[str], place: int, before: str) -> dict[str, str]:
    """One, two and three characters at each place around one, and the tag before it."""
    padded = ["<"] * 3 + list(tokens) + [">"] * 4
    features = {"tag before": before}
    for shift in _AROUND:
        start = place + 3 + shift
        for length in (1, 2, 3):
            features[f"{length} at {shift}"] = "".join(padded[start : start + length])
    return features


def main() -> None:
    """Print or write what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, paths in {
        "texts": ("source", "target"),
        "entropy": ("texts", "vocabulary"),
        "linear": ("source",),
    }.items():
        command = commands.add_parser(name)
        for path in paths:
            command.add_argument(path, type=Path)
    arguments = parser.parse_args()
    if arguments.command == "texts":
        write_texts(arguments.source, arguments.target)
    elif arguments.command == "entropy":
        print_entropy(arguments.texts, arguments.vocabulary)
    else:
        print_linear(arguments.source)


if __name__ == "__main__":
    main()
