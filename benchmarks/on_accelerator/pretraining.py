"""BERT-base and NEZHA-base: sequences a second beside transformers in a tuned loop.

The peer has scaled-dot-product attention, torch's autocast, a fused AdamW and, in float16, a
GradScaler; eager and compiled. transformers has no NEZHA any more, so that NEZHA stands beside our
BERT.
"""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import torch

from jumar.devices.contract import Device
from jumar.precision.modes import find_mode
from on_accelerator.cases import PRETRAINING, Case
from on_accelerator.measuring import Context, Measurement, Row
from on_accelerator.rivals import Rival, Step, compare
from on_accelerator.trainings import MODES, dtype_of, in_mode, jumar_rival, short_name
from on_accelerator.written_data import PIECES, PREDICTIONS


def measurements(context: Context) -> Sequence[Measurement]:
    """Each network and length in bfloat16 first."""
    modes = context.pick(MODES[:3], MODES[:1])
    return [
        Measurement(
            name=f"{case.name}, {short_name(mode)}",
            measure=partial(in_turns, case=case, mode=mode),
            seconds=80,
            is_later=mode == MODES[2],
        )
        for mode in modes
        for case in context.pick(PRETRAINING, PRETRAINING[::2])
    ]


def in_turns(context: Context, *, case: Case, mode: str) -> list[Row]:
    """Steps on a batch that is on the device already."""
    settings, samples = [*case.settings(context), *in_mode(mode)], case.samples(context)
    rivals = [jumar_rival(case.recipe, settings)]
    if not context.small:
        rivals.append(jumar_rival(case.recipe, settings, compiled=True))
    if case.recipe == "bert-base":
        rivals.append(_peer(case, mode, compiled=False))
        rivals += [] if context.small else [_peer(case, mode, compiled=True)]
    else:
        like = [*_as_bert(case).settings(context), *in_mode(mode)]
        rivals.append(jumar_rival("bert-base", like, label="jumar's BERT"))
    about = {"network, length": case.title(context), "batch": samples, "mode": short_name(mode)}
    return compare(context, rivals, about, samples=samples, dtype=dtype_of(mode))


def _as_bert(case: Case) -> Case:
    length = case.name.rpartition(" ")[2]
    return next(each for each in PRETRAINING if each.name == f"BERT-base, {length}")


def _peer(case: Case, mode: str, *, compiled: bool) -> Rival:
    def build(context: Context, device: Device) -> Step:
        length = int(case.name.rpartition(" ")[2])
        return transformers_step(context, device, mode, case.samples(context), length, compiled)

    label = "transformers, torch.compile" if compiled else "transformers"
    return Rival(name=label, build=build, is_peer=True)


def transformers_step(
    context: Context, device: Device, mode: str, samples: int, length: int, compiled: bool
) -> Step:
    """A step of transformers' pre-training in a tuned loop; full sequences need no mask."""
    transformers: Any = import_module("transformers")  # not among our dependencies

    dtype = find_mode(mode).low
    if dtype == torch.float16 and not device.computes_fp16:
        dtype = torch.bfloat16
    device.set_full_float32(True)
    device.set_deterministic(False)
    # As `SMALL_BERT`.
    small = {"num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 2}
    small |= {"intermediate_size": 128}
    config = transformers.BertConfig(
        vocab_size=PIECES, attn_implementation="sdpa", **(small if context.small else {})
    )
    model: Any = transformers.BertForPreTraining(config).to(device.torch).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), 1e-4, fused=device.has_kernel("_fused_adamw_")
    )
    scaler = torch.amp.GradScaler(device.kind, enabled=dtype == torch.float16)
    ids = torch.randint(0, PIECES, (samples, length))
    labels = torch.full_like(ids, -100)
    places = torch.stack([torch.randperm(length)[:PREDICTIONS] for _ in range(samples)])
    labels.scatter_(1, places, torch.randint(0, PIECES, (samples, PREDICTIONS)))
    batch = {
        "input_ids": ids,
        "token_type_ids": torch.randint(0, 2, (samples, length)),
        "labels": labels,
        "next_sentence_label": torch.randint(0, 2, (samples,)),
    }
    batch = {name: tensor.to(device.torch) for name, tensor in batch.items()}
    call = torch.compile(model) if compiled else model

    def step() -> None:
        with torch.autocast(device.kind, dtype or torch.bfloat16, enabled=dtype is not None):
            loss = call(**batch).loss
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)

    return step
