"""Op lists that come with the package."""

from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.precision.mixlist import lint_mixlist, load_mixlist
from jumar.precision.modes import mode_names
from jumar.precision.oplist import default_lists
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from jumar.precision.shipped_mixlists import find_mixlist, shipped_mixlists
from jumar.settings import checked

MIXED = "allow_mix_precision"


@pytest.mark.parametrize("name", shipped_mixlists())
def test_every_shipped_list_is_valid(name: str) -> None:
    assert lint_mixlist(name, MIXED) == []


def test_nlrns_list_only_keeps_the_softmax_in_fp32() -> None:
    before, after = default_lists(), load_mixlist("nlrn")
    assert after["softmax.int"] == after["_softmax"] == "black"
    assert all("softmax" in op for op, name in after.items() if before.get(op) != name)


@pytest.mark.parametrize("mode", mode_names())
def test_recipes_list_is_accepted_with_every_mode(mode: str) -> None:
    settings = checked(PrecisionSettings(mode=mode, modify_mixlist="nlrn"))
    policy = PrecisionPolicy(settings, device_type="cpu")
    policy.install()
    policy.close()


def test_file_named_like_a_shipped_list_needs_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nlrn").write_text('{"black-list": {"to-add": ["Add"]}}')
    monkeypatch.chdir(tmp_path)
    assert load_mixlist("nlrn")["add.Tensor"] != "black"
    assert load_mixlist("./nlrn")["add.Tensor"] == "black"
    assert find_mixlist(tmp_path / "nlrn") == tmp_path / "nlrn"


def test_unknown_name_lists_the_shipped_ones() -> None:
    with pytest.raises(UserError, match=r"Lists shipped with the package: nlrn\."):
        load_mixlist("nlrm")
