"""Instances that google-research/bert's create_pretraining_data.py made of real texts."""

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from jumar.data.records.example import FloatFeature, IntegerFeature, decode_example
from jumar.data.text.documents import read_documents
from jumar.data.text.original_order import Draws, Masking, original_instances, truncate
from jumar.data.text.original_writer import write_original
from jumar.data.text.pretraining_files import PretrainingRequest, shard_names
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.tokenizer import Tokenizer, open_tokenizer
from jumar.data.text.vocabulary import SPECIAL, Vocabulary
from tests.data.text.payloads import payloads_of


@pytest.fixture(scope="module")
def case(parity: Path) -> dict[str, Any]:
    return json.loads((parity / "nlp_pretraining.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def texts(case: dict[str, Any], shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The inputs, made as the fixture says."""
    folder = tmp_path_factory.mktemp("texts")
    source = shared / "data" / "nlp-zh" / "pretrain"
    chinese = (source / "zhwiki-simplified.txt").read_text(encoding="utf-8").split("\n\n")
    (folder / "english").write_bytes((source / "sample_text.txt").read_bytes())
    (folder / "chinese").write_text("\n\n".join(chinese[:12]) + "\n", encoding="utf-8")
    for name, facts in case["inputs"].items():
        assert hashlib.sha1((folder / name).read_bytes()).hexdigest() == facts["sha1"]
    return folder


@pytest.fixture(scope="module")
def tokenizer(shared: Path) -> Tokenizer:
    return open_tokenizer(shared / "data" / "nlp-zh" / "vocab.txt")


def options_of(run: dict[str, Any]) -> PretrainingOptions:
    return PretrainingOptions(
        **run["config"], random_seed=run["seed"], whole_word_mask=run["whole_word_mask"]
    )


def test_every_instance_of_every_run_matches_the_original_in_order(
    case: dict[str, Any], texts: Path, tokenizer: Tokenizer
) -> None:
    pieces = tokenizer.vocabulary.pieces
    assert len(case["runs"]) == 8
    for run in case["runs"]:
        options, draws = options_of(run), Draws(run["seed"])
        documents = read_documents(tokenizer, [texts / name for name in run["inputs"]])
        documents = [document for document in documents if document]
        instances = list(original_instances(documents, tokenizer.vocabulary, options, draws))
        draws.shuffle(instances)
        spelt = [
            [
                [pieces[number] for number in each.ids],
                [0] * (each.first + 2) + [1] * (len(each.ids) - each.first - 2),
                each.is_random_next,
                each.positions,
                [pieces[number] for number in each.labels],
            ]
            for each in instances
        ]
        assert spelt[:8] == run["instances"]
        assert len(spelt) == run["count"]
        assert sum(each.is_random_next for each in instances) == run["random_next"]
        assert sum(len(each.labels) for each in instances) == run["masked_total"]
        text = json.dumps(spelt, ensure_ascii=False, separators=(",", ":"))
        assert hashlib.sha1(text.encode()).hexdigest() == run["sha1"], run["name"]


@pytest.mark.parametrize("shards", [1, 3])
def test_written_records_have_the_originals_features(
    case: dict[str, Any], texts: Path, tokenizer: Tokenizer, tmp_path: Path, shards: int
) -> None:
    for number, run in enumerate(case["runs"]):
        folder = tmp_path / f"run{number}"
        write_original(
            PretrainingRequest(
                files=[texts / name for name in run["inputs"]],
                tokenizer=tokenizer,
                options=options_of(run),
                destination=folder,
                shards=shards,
            )
        )
        records = [payloads_of(folder / name) for name in shard_names(shards)]
        assert sum(map(len, records)) == run["count"]
        for index, features in enumerate(run["features_of_first_three"]):
            decoded = decode_example(records[index % shards][index // shards])
            assert decoded.keys() == features.keys()
            for name, values in features.items():
                kind = FloatFeature if name == "masked_lm_weights" else IntegerFeature
                assert decoded[name] == kind(tuple(values)), name


def test_masks_match_the_original_for_any_tokens(case: dict[str, Any]) -> None:
    masking = case["masking_only"]
    tokens = masking["tokens"]
    # Where masks replace words at random, the original drew from the vocabulary's 21,128.
    vocabulary = Vocabulary(
        tuple(dict.fromkeys((*SPECIAL, *tokens))) + tuple(f"unused {i}" for i in range(21128))
    )
    ids = [vocabulary.ids[token] for token in tokens]
    for each in masking["results"]:
        options = PretrainingOptions(
            max_predictions_per_seq=each["max_predictions"],
            masked_lm_prob=each["masked_lm_prob"],
            whole_word_mask=each["whole_word_mask"],
        )
        masked, positions, labels = Masking(vocabulary, options)(ids, Draws(each["seed"]))
        assert positions == each["positions"]
        assert [vocabulary.pieces[number] for number in labels] == each["labels"]
        hidden = [place for place, token in enumerate(each["tokens"]) if token == "[MASK]"]
        assert [place for place, number in enumerate(masked) if number == 4] == hidden


def test_pairs_are_truncated_at_the_same_ends_as_in_the_original(case: dict[str, Any]) -> None:
    for seed, first, second in case["truncate_pair_to_10"]:
        # Lengths that the fixture does not state and its results do.
        pair = [f"a{i}" for i in range(9)], [f"b{i}" for i in range(6)]
        truncate(*pair, 10, Draws(seed))
        assert list(pair) == [first, second]


def test_random_numbers_match_pythons() -> None:
    for seed in range(20):
        ours, python = Draws(seed), random.Random(seed)
        items, wanted = list(range(200)), list(range(200))
        for limit in (1, 2, 3, 64, 65, 21128):
            assert ours.below(limit) == python.randrange(limit)
            assert ours.between(2, 1 + limit) == python.randint(2, 1 + limit)
            ours.shuffle(items)
            python.shuffle(wanted)
            assert items == wanted
            assert ours.random() == python.random()
