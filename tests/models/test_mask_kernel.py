"""The kernel for dropout masks, interpreted on the CPU and compiled for GPUs that are not there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT

TRITON = os.environ.get("JUMAR_TRITON", "")
needs_triton = pytest.mark.skipif(
    not TRITON, reason="needs JUMAR_TRITON: a folder with Triton, pip install --target"
)

COMPARED = """
import torch
from jumar.models import keyed_dropout, mask_kernel
from jumar.models.keyed_random import random_position

mask_kernel.check_kernel(torch.device("cpu"))
draws = torch.Generator().manual_seed(0)
long, short = torch.int64, torch.int32
for tokens, features, indices in ((1, 1, long), (33, 87, short), (50, 768, long)):
    samples = torch.randint(0, 9, (tokens,), generator=draws).to(indices)
    places = torch.randint(0, 6144, (tokens,), generator=draws).to(indices)
    for key, first in ((0, 0), (-3, 2**31 - 2), (2**63, 16)):
        for p, dtype in ((0.1, torch.bfloat16), (0.5, torch.float16), (1 - 2**-40, torch.float32)):
            position = random_position(key, first)
            expected = keyed_dropout._mask(
                position.start, position.key, samples, places, features, p, dtype
            )
            mask = mask_kernel.mask_of(
                samples, places, features, position,
                keyed_dropout._threshold(p), keyed_dropout._kept(p, dtype),
            )
            assert mask.dtype == dtype
            assert torch.equal(mask, expected), (tokens, features, key, p, dtype)
print("equal")
"""

COMPILED = """
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from jumar.models.mask_kernel import COLUMNS, ROWS, token_mask

names = "mask samples places start key threshold kept tokens features rows columns".split()
for pointer in ("*bf16", "*fp16", "*fp32"):
    types = [pointer, "*i64", "*i64", "i32", "i32", "i32", "fp32", "i32", "i32"]
    types += ["constexpr", "constexpr"]
    source = ASTSource(
        fn=token_mask,
        signature=dict(zip(names, types)),
        constexprs={"rows": ROWS, "columns": COLUMNS},
        attrs={(0,): [["tt.divisibility", 16]], (8,): [["tt.divisibility", 16]]},
    )
    ptx = compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    stores = {word for word in ptx.split() if word.startswith("st.global")}
    assert stores == {"st.global.v4.b32"}, stores
print("wide")
"""


def printed(program: str, **variables: str) -> str:
    """What a fresh process prints, on standard output and as warnings."""
    variables |= {"PYTHONPATH": os.pathsep.join([str(CHECKOUT / "src"), *filter(None, [TRITON])])}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@needs_triton
def test_kernel_writes_the_masks_of_torch_bit_for_bit() -> None:
    assert "equal" in printed(COMPARED, TRITON_INTERPRET="1")


@needs_triton
def test_kernel_compiles_for_an_h100_with_stores_of_16_bytes(tmp_path: Path) -> None:
    assert "wide" in printed(COMPILED, TRITON_CACHE_DIR=str(tmp_path), TRITON_INTERPRET="0")


def test_broken_triton_is_reported_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "triton.py").write_text("raise ImportError('libtriton.so is missing')\n")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import torch\n"
        "from jumar.models.keyed_dropout import _mask_kernel\n"
        "print(_mask_kernel(torch.device('cuda', 0)), _mask_kernel(torch.device('cuda', 0)))\n"
    )
    text = printed(program)
    assert text.startswith("None None\n")
    warning = "the Triton kernel for dropout masks does not work on cuda:0"
    assert text.count(warning) == 1
    assert "so slower torch ops compute them: libtriton.so is missing" in text
