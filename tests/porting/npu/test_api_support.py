"""The table of supported API."""

import pytest

from jumar.porting.npu.api_support import LEVELS, names_of, release
from jumar.porting.script.names import canonical


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("tensorflow.is_finite", "unsupported"),
        ("tensorflow.tpu.bfloat16_scope", "unsupported"),
        ("tensorflow.train.replica_device_setter", "harmless"),
        ("tensorflow.nn.dropout", "ported"),
        ("tensorflow.Session", "ported"),
        ("tensorflow.nn.relu", "supported"),
        ("tensorflow.contrib.rnn.LayerNormBasicLSTMCell", "deprecated"),
        ("tensorflow.nn.ctc_loss", "contradictory"),
    ],
)
def test_names_have_the_lists_support_level(name: str, level: str) -> None:
    assert [each for each in LEVELS if name in names_of(each)] == [level]


def test_each_name_is_listed_once_as_the_rules_spell_it() -> None:
    names = names_of(*LEVELS)
    assert len(names) == len(set(names)) > 3500
    assert [name for name in names if canonical(name) != name] == []
    assert all(name.startswith("tensorflow.") for name in names)


def test_list_states_its_date() -> None:
    assert release() == "2023-12-15"
