"""YAML that Kubernetes reads as it was meant."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.launching.job import checked_text
from jumar.launching.yaml_text import documents
from tests.launching.launches import HARD
from tests.launching.test_node import sendable

yaml = pytest.importorskip("yaml")

WORDS = st.text().filter(sendable)
SCRIPTS = st.lists(WORDS, min_size=1).map(lambda lines: "".join(f"{line}\n" for line in lines))
VALUES = st.recursive(
    st.one_of(WORDS, SCRIPTS, st.integers(), st.booleans(), st.none(), st.sampled_from(HARD)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(WORDS.filter(bool), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(WORDS.filter(bool), VALUES, min_size=1, max_size=3), min_size=1))
def test_yaml_round_trips(objects):
    assert list(yaml.safe_load_all(documents(*objects))) == objects


@pytest.mark.parametrize(
    "text",
    ["no", "On", "null", "~", "1", "1e3", "0x1f", "1:30", "2026-01-01", "a: b", "- a", "#", "a #b"],
)
def test_strings_stay_strings(text):
    assert yaml.safe_load(documents({"value": text, "list": [text]})) == {
        "value": text,
        "list": [text],
    }


def test_scripts_are_readable_block_scalars():
    text = documents({"data": {"run.sh": "set -eu\n\nif true; then\n    echo 'é'\nfi\n"}})
    assert text == (
        "data:\n  run.sh: |\n    set -eu\n\n    if true; then\n        echo 'é'\n    fi\n"
    )


def test_characters_beyond_16_bits_stay_one_character():
    assert checked_text("😀") in documents({"a": "😀"})
