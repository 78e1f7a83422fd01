"""The command that resumes a run on the same number of ranks."""

from pathlib import Path

import pytest

from jumar.training.parallel.ranks import Ranks
from jumar.training.resume_hint import resume_hint
from jumar.training.run_directory import RunDirectory

VARIABLES = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_MAX_RESTARTS", "MASTER_ADDR", "MASTER_PORT")
UUID = "123e4567-e89b-12d3-a456-426614174000"


@pytest.mark.parametrize(
    ("ranks", "variables", "start"),
    [
        (Ranks(), {}, "Resume with: jumar"),
        (Ranks(), {"TORCHELASTIC_MAX_RESTARTS": "0"}, "Resume with: jumar"),
        (Ranks(), {"TORCHELASTIC_MAX_RESTARTS": "often"}, "Resume with: jumar"),
        (
            Ranks(world=4, local_world=4),
            {},
            "Resume with: torchrun --nproc-per-node 4 -m jumar",
        ),
        (
            # Of `--standalone`, which is alone however often it starts over.
            Ranks(world=4, local_world=4),
            {"TORCHELASTIC_RUN_ID": UUID, "TORCHELASTIC_MAX_RESTARTS": "3"},
            "Resume with: torchrun --standalone --nproc-per-node 4 -m jumar",
        ),
        (
            Ranks(world=4, local_world=4),
            {"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_MAX_RESTARTS": "1"},
            "Resume on every machine with: torchrun --nnodes MIN:MAX --nproc-per-node 4 "
            "--max-restarts 1 --rdzv-backend c10d --rdzv-endpoint ADDRESS:PORT -m jumar",
        ),
        (
            Ranks(rank=5, world=6, local_world=2),
            {"MASTER_ADDR": "node0"},
            "Resume on every machine with: torchrun --nnodes 3 --nproc-per-node 2 "
            "--node-rank NODE_RANK --master-addr node0 --master-port PORT -m jumar",
        ),
        (
            Ranks(world=6, local_world=2),
            {"TORCHELASTIC_RUN_ID": UUID, "MASTER_PORT": "29500"},
            "Resume on every machine with: torchrun --nnodes 3 --nproc-per-node 2 "
            "--node-rank NODE_RANK --master-addr ADDRESS --master-port 29500 -m jumar",
        ),
    ],
)
def test_resume_hint_is_the_whole_command(
    monkeypatch: pytest.MonkeyPatch, ranks: Ranks, variables: dict[str, str], start: str
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    line = resume_hint(RunDirectory(Path("run")), "npu:1", ranks)
    assert line == f"{start} train --resume --run-dir run --device npu:1"
