import pytest
import torch

from jumar.ground.errors import UserError
from jumar.training.parallel.announced import announced_ranks
from jumar.training.parallel.ranks import Ranks
from jumar.training.parallel.replicated import Replicated


def announce(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_without_torchrun_there_is_one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    announce(monkeypatch)
    assert announced_ranks() == Ranks(rank=0, world=1, local_world=1)


def test_torchruns_variables_say_which_rank_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    announce(monkeypatch, RANK="5", WORLD_SIZE="8", LOCAL_WORLD_SIZE="4")
    ranks = announced_ranks()
    assert (ranks.rank, ranks.world, ranks.local_world) == (5, 8, 4)
    assert not ranks.is_first


@pytest.mark.parametrize(
    "variables",
    [{"RANK": "2", "WORLD_SIZE": "2"}, {"RANK": "-1"}, {"RANK": "1"}, {"WORLD_SIZE": "two"}],
)
def test_variables_that_contradict_each_other_are_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    announce(monkeypatch, **variables)
    with pytest.raises(UserError, match="WORLD_SIZE"):
        announced_ranks()


def test_one_rank_agrees_with_itself_at_once() -> None:
    alone = Ranks()
    agreement = alone.agreement(3)
    assert agreement.exchange([1, 0, 2]) == [1, 0, 2]
    assert agreement.exchange([0, 0, 0]) == [0, 0, 0]
    agreement.finish()
    sums = {"count": torch.tensor(2.0)}
    assert alone.sums(sums) == alone.rows(sums) == sums
    assert alone.texts(["a", "a"]) == ["a"]
    assert alone.shared_text("a") == "a"
    value = torch.tensor(3.0)
    assert alone.maximum(value) == alone.mean(value) == 3
    weights = alone.mean_weights({"tokens": torch.tensor(5), "none": torch.tensor(0)})
    assert {name: weight.item() for name, weight in weights.items()} == {"tokens": 5.0, "none": 1.0}


def test_several_ranks_are_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    announce(monkeypatch, RANK="1", WORLD_SIZE="2", LOCAL_WORLD_SIZE="2")
    assert type(announced_ranks()) is Replicated
