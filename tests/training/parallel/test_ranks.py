import socket
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from jumar.devices.registry import open_device
from jumar.ground.errors import UserError
from jumar.training.parallel.announced import announced_ranks, is_elastic
from jumar.training.parallel.ranks import Ranks
from jumar.training.parallel.replicated import Replicated
from jumar.training.parallel.tree_sum import Span, TreeSum
from tests.training.small_tasks import GanTask, point_task


def announce(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_without_torchrun_there_is_one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    announce(monkeypatch)
    assert announced_ranks() == Ranks(rank=0, world=1, local_world=1)


def test_torchruns_variables_determine_the_rank(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_one_rank_agrees_with_itself_immediately() -> None:
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


def test_contradicting_variables_are_reported_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    announce(monkeypatch, RANK="2", WORLD_SIZE="2")
    with pytest.raises(UserError) as refused:
        announced_ranks()
    assert str(refused.value) == (
        "RANK=2 does not fit WORLD_SIZE=2\n"
        "  Start several ranks with: torchrun --nproc-per-node N -m jumar train ..."
    )
    announce(monkeypatch, RANK="one", WORLD_SIZE="2")
    with pytest.raises(UserError, match=r"^RANK and WORLD_SIZE must be whole numbers: .*'one'"):
        announced_ranks()
    announce(monkeypatch, RANK="1", WORLD_SIZE="2")
    assert announced_ranks() == Replicated(rank=1, world=2, local_world=1)
    for restarts, elastic in (("0", False), ("1", True), ("-1", False), ("x", False)):
        monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", restarts)
        assert is_elastic() is elastic
    monkeypatch.delenv("TORCHELASTIC_MAX_RESTARTS")
    assert not is_elastic()


def test_one_rank_passes_everything_through() -> None:
    alone, device = Ranks(), open_device("cpu")
    objective = point_task().objectives[0]
    assert alone.wrap(objective, objective, device) is objective
    with alone.accumulating(objective, last=False) as nothing:
        assert nothing is None
    assert alone.loss_in(RuntimeError("connection reset by gloo")) == ""
    assert alone.texts(["b", "a", "b"]) == ["b", "a"]
    sums = TreeSum(2)
    for number in range(2):
        sums.add(Span(number, 1), torch.tensor([1.0 + number]))
    assert alone.tree_exchange().whole(sums).item() == 3.0
    half = alone.mean_weights({"tokens": torch.tensor(2.5), "less": torch.tensor(-1.0)})
    assert {name: value.item() for name, value in half.items()} == {"tokens": 2.5, "less": 1.0}


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Replicated]:
    """A group of one rank, with all that several have."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(port))
    ranks = Replicated(rank=0, world=1, local_world=1)
    ranks.connect(open_device("cpu"))
    ranks.connect(open_device("cpu"))  # does nothing the second time
    yield ranks
    ranks.disconnect()
    ranks.disconnect()


def test_group_exchanges_values_rows_and_texts_and_agrees_one_step_later(group: Replicated) -> None:
    value = torch.tensor([1.0, -2.0])
    assert group.maximum(value) is value
    assert group.mean(value).tolist() == [1.0, -2.0]
    tokens = torch.tensor(3.0)
    weights = group.mean_weights({"tokens": tokens, "none": torch.tensor(0.0)})
    assert {name: each.item() for name, each in weights.items()} == {"tokens": 3.0, "none": 1.0}
    assert weights["tokens"] is not tokens
    sums = {"count": torch.tensor(2.0, dtype=torch.float64), "each": torch.tensor([1.0, 2.0])}
    assert {name: each.tolist() for name, each in group.sums(sums).items()} == {
        "count": 2.0,
        "each": [1.0, 2.0],
    }
    rows = {"row": torch.arange(6).reshape(3, 2)}
    assert group.rows(rows)["row"].tolist() == rows["row"].tolist()
    assert group.texts(["b", "a", "b"]) == ["b", "a"]
    assert group.shared_text("the first one's") == "the first one's"
    agreement = group.agreement(2)
    assert agreement.exchange([1, 2]) == [0, 0]
    assert agreement.exchange([3, 0]) == [1, 2]
    agreement.finish()
    agreement.finish()
    assert agreement.exchange([0, 0]) == [3, 0]
    agreement.finish()
    net = point_task().model
    before = [buffer.clone() for buffer in net.buffers()]
    group.share_buffers(net)
    assert all(map(torch.equal, before, net.buffers()))
    group.wait()


def test_objective_exchanges_only_its_gradients_in_the_last_part(
    group: Replicated,
) -> None:
    task = GanTask()
    discriminate = task.objectives[0]
    with warnings.catch_warnings():
        # What torch says of an option whose replacement is too new is no matter of the user's.
        warnings.simplefilter("error")
        wrapped = group.wrap(discriminate, discriminate, open_device("cpu"))
    assert isinstance(wrapped, DistributedDataParallel)
    assert wrapped.module is discriminate
    assert not wrapped.broadcast_buffers
    names = {name for name, each in discriminate.named_parameters() if each.shape[0] != 1}
    assert {name for name in wrapped.parameters_to_ignore if "g." in name} == {
        name for name in names if "g." in name
    }
    with group.accumulating(wrapped, last=False):
        assert not wrapped.require_backward_grad_sync
    with group.accumulating(wrapped, last=True):
        assert wrapped.require_backward_grad_sync
    with group.accumulating(discriminate, last=False) as nothing:
        assert nothing is None
