import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.training.checkpoint_state import read_values, write_values


def refuse(word: str) -> Any:
    raise AssertionError(f"{word} is not JSON")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_number_round_trips_bitwise(tmp_path: Path, dtype: torch.dtype) -> None:
    info = torch.finfo(dtype)
    edges = [0.0, -0.0, 0.1, 1 / 3, info.max, info.min, info.tiny, info.tiny / 4, 1 + info.eps]
    random = torch.randn(500, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    tensor = torch.cat([torch.tensor(edges, dtype=torch.float64), random.exp()]).to(dtype)
    file = tmp_path / "state.json"
    write_values(file, {"numbers": [value.item() for value in tensor]})
    read = torch.tensor(read_values(file)["numbers"], dtype=dtype)
    assert torch.equal(read.view(torch.uint8), tensor.view(torch.uint8))


def test_values_json_cannot_express_round_trip_through_valid_json(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    values = {"a": [math.inf, {"b": -math.inf}], "float": 1.0, "c": math.nan, "d": {"float": "x"}}
    write_values(file, values)
    json.loads(file.read_text(), parse_constant=refuse)
    read = read_values(file)
    assert struct.pack("d", read.pop("c")) == struct.pack("d", values.pop("c"))
    assert read == values


def test_non_json_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text("[1")
    with pytest.raises(UserError) as refused:
        read_values(file)
    assert refused.value.where == str(file)
