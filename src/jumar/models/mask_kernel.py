"""A Triton kernel for the dropout masks of tokens.

The ops of `jumar.models.keyed_random` read and write some 80 bytes per element of a mask, 50 GB in
a step of BERT-base with 128 samples of 128 tokens; the kernel only writes the mask. It computes the
same integers. Imported only where Triton is installed, which comes with torch for CUDA and ROCm.
"""

# Triton's types cannot be checked, and it is not a dependency.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false

import torch
import triton
from triton import language as tl

from jumar.models.keyed_random import RandomPosition, keyed_token_bits, random_position

ROWS, COLUMNS = 16, 128
"""The tile of one program; 128 divides the usual numbers of features and lengths."""


def check_kernel(device: torch.device) -> None:
    """Launch the kernel on a small mask.

    Raises:
        RuntimeError: The mask is wrong. Triton raises errors of many classes if it cannot compile,
            for instance without a C compiler.
    """
    tokens = torch.arange(ROWS + 1, device=device)
    position, features = random_position(1), COLUMNS + 1
    mask = mask_of(tokens, tokens, features, position, 0, torch.tensor(2.0, dtype=torch.bfloat16))
    if not torch.equal(mask > 0, keyed_token_bits(tokens, tokens, features, position) >= 0):
        raise RuntimeError("its mask differs from that of torch")


def mask_of(
    samples: torch.Tensor,
    places: torch.Tensor,
    features: int,
    position: RandomPosition,
    threshold: int,
    kept: torch.Tensor,
) -> torch.Tensor:
    """The mask of a batch of tokens: [tokens, features], in the dtype of `kept`.

    Args:
        samples: int [tokens], the row of each token's sample in the batch.
        places: int [tokens], different for each token of a sample.
        features: Features per token.
        position: The batch's position.
        threshold: Features are kept where `keyed_token_bits` are not below it.
        kept: The value of a kept feature, a scalar on the CPU; others are 0.
    """
    tokens = len(samples)
    mask = torch.empty((tokens, features), dtype=kept.dtype, device=samples.device)
    numbers = position.start.item(), position.key.item(), threshold, kept.item()
    grid = (triton.cdiv(tokens, ROWS), triton.cdiv(features, COLUMNS))
    # On the current device, which is that of the tensors: a process selects one.
    token_mask[grid](
        mask,
        samples.contiguous(),
        places.contiguous(),
        *numbers,
        tokens,
        features,
        rows=ROWS,
        columns=COLUMNS,
    )
    return mask


@triton.jit
def mix32(bits):
    """`_mix32` of `jumar.models.keyed_random` on unsigned numbers, whose shift is logical."""
    bits = bits ^ (bits >> 16)
    bits = bits * 0x7FEB352D
    bits = bits ^ (bits >> 15)
    return bits * 0x846CA68B


# Numbers that change from step to step would be compiled anew when they are 1 or divisible by 16;
# features are not among them, since a multiple of 16 is written in wide stores.
@triton.jit(do_not_specialize=["start", "key", "threshold", "tokens"])
def token_mask(
    mask,
    samples,
    places,
    start,
    key,
    threshold,
    kept,
    tokens,
    features,
    rows: tl.constexpr,
    columns: tl.constexpr,
):
    """One tile of a mask [tokens, features]; for the arguments see `mask_of`."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.program_id(1) * columns + tl.arange(0, columns)
    is_row = row < tokens
    sample = tl.load(samples + row, mask=is_row, other=0).to(tl.uint32)
    place = tl.load(places + row, mask=is_row, other=0).to(tl.uint32)
    token = mix32(mix32(sample + start.to(tl.uint32)) + key.to(tl.uint32))
    token = mix32(token + mix32(place + 1))
    bits = mix32(token[:, None] + mix32(column.to(tl.uint32))[None, :])
    values = tl.where(bits.to(tl.int32, bitcast=True) >= threshold, kept, 0.0)
    # 64 bits: attention weights of a large batch are more than 2**31.
    offsets = row.to(tl.int64)[:, None] * features + column[None, :]
    is_inside = is_row[:, None] & (column < features)[None, :]
    tl.store(mask + offsets, values.to(mask.dtype.element_ty), mask=is_inside)
