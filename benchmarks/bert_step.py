"""A training step of BERT and NEZHA beside transformers', as ratios.

    pip install transformers
    python benchmarks/bert_step.py                          # BERT-base, about 15 minutes
    python benchmarks/bert_step.py --layers 4 --only step
    python benchmarks/bert_step.py --only padding --texts chnsenticorp/train.tsv --vocab vocab.txt

Prints up to three tables. The variants of a table take turns in one process, and the clock is the
process's CPU time, so that a busy machine disturbs the ratios little.

- step: pre-training, full instances of 128 word pieces with 20 masked ones, against transformers'
  BertForPreTraining in the same loop (autocast, fused AdamW, scaled-dot-product attention), in
  float32 and bfloat16.
- nezha: NEZHA against BERT of the same size at lengths 128 and 512, in float32, with its distances
  in either of the two exact forms.
- padding: classification of real texts in batches, without padding against padding to the longest
  of the batch.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from jumar.data.text.tokenizer import open_tokenizer
from jumar.models.bert import relative
from jumar.models.bert.heads import BertForClassification, BertForPretraining
from jumar.models.bert.network import BertSize, Positions
from jumar.models.keyed_random import set_random_position
from jumar.tasks.pretraining import PretrainingObjective

VOCABULARY = 21_128
PREDICTIONS = 20
DTYPES = {"float32": None, "bfloat16": torch.bfloat16}


def take_turns(variants: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Median CPU seconds of each variant, after a round of warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(rounds + 1):
        for name, run in variants.items():
            start = time.process_time()
            run()
            if turn:
                seconds[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def report(title: str, seconds: Mapping[str, float], peer: str) -> None:
    """Print the time of every variant and how many times as fast as the peer it is."""
    print(title, flush=True)
    for name, value in seconds.items():
        print(f"  {name:<24} {value:8.3f} s   {seconds[peer] / value:5.2f} x {peer}", flush=True)


def instances(samples: int, length: int) -> dict[str, Tensor]:
    """Full instances with random word pieces."""
    return {
        "input_ids": torch.randint(0, VOCABULARY, (samples, length)),
        "input_mask": torch.ones(samples, length, dtype=torch.int64),
        "segment_ids": torch.randint(0, 2, (samples, length)),
        "masked_lm_positions": torch.stack(
            [torch.randperm(length)[:PREDICTIONS].sort()[0] for _ in range(samples)]
        ),
        "masked_lm_ids": torch.randint(0, VOCABULARY, (samples, PREDICTIONS)),
        "masked_lm_weights": torch.ones(samples, PREDICTIONS),
        "next_sentence_labels": torch.randint(0, 2, (samples,)),
    }


def our_step(
    layers: int, batch: dict[str, Tensor], dtype: torch.dtype | None, positions: Positions
) -> Callable[[], None]:
    """A step of our pre-training."""
    size = BertSize(vocab_size=VOCABULARY, num_layers=layers, positions=positions)
    objective = PretrainingObjective(BertForPretraining(size)).train()
    optimizer = torch.optim.AdamW(objective.parameters(), 1e-4, fused=True)
    steps = iter(range(1 << 30))

    def step() -> None:
        set_random_position(objective, next(steps), 0)
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            sums = objective(batch)
        weights = objective.weights(batch)
        samples = len(batch["input_ids"])
        loss = sum(sums[name] / weights.get(name, samples) for name in objective.minimized)
        assert isinstance(loss, Tensor)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def in_form(dense_up_to: int, layers: int, batch: dict[str, Tensor]) -> Callable[[], None]:
    """A step of NEZHA with its distances in one of the two forms of `models/bert/relative.py`."""
    step = our_step(layers, batch, None, "relative")

    def run() -> None:
        relative.DENSE_UP_TO = dense_up_to
        relative.relative_positions.cache_clear()
        step()

    return run


def peer_step(
    layers: int, batch: dict[str, Tensor], dtype: torch.dtype | None
) -> Callable[[], None]:
    """A step of transformers' pre-training."""
    from transformers import BertConfig, BertForPreTraining

    config = BertConfig(vocab_size=VOCABULARY, num_hidden_layers=layers, attn_implementation="sdpa")
    model = BertForPreTraining(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    labels = torch.full_like(batch["input_ids"], -100)
    labels.scatter_(1, batch["masked_lm_positions"], batch["masked_lm_ids"])

    def step() -> None:
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            loss = model(
                batch["input_ids"],
                attention_mask=batch["input_mask"],
                token_type_ids=batch["segment_ids"],
                labels=labels,
                next_sentence_label=batch["next_sentence_labels"],
            ).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def compare_steps(options: argparse.Namespace) -> None:
    """Print the table `step`."""
    batch = instances(options.batch, 128)
    for name, dtype in DTYPES.items():
        variants = {
            "jumar": our_step(options.layers, batch, dtype, "absolute"),
            "transformers": peer_step(options.layers, batch, dtype),
        }
        title = f"pre-training step, {options.layers} layers, batch {options.batch}, {name}"
        report(title, take_turns(variants, options.rounds), "transformers")


def compare_nezha(options: argparse.Namespace) -> None:
    """Print the table `nezha`."""
    for length, samples in ((128, options.batch), (512, max(1, options.batch // 4))):
        batch = instances(samples, length)
        variants = {
            "BERT": our_step(options.layers, batch, None, "absolute"),
            "NEZHA, dense": in_form(1 << 30, options.layers, batch),
            "NEZHA, buckets": in_form(0, options.layers, batch),
        }
        title = f"pre-training step, {options.layers} layers, {samples} x {length}, float32"
        report(title, take_turns(variants, options.rounds), "BERT")


def compare_padding(options: argparse.Namespace) -> None:
    """Print the table `padding`."""
    tokenizer = open_tokenizer(str(options.vocab))
    lines = options.texts.read_text(encoding="utf-8").splitlines()[1:]
    texts = [line.split("\t")[-1] for line in lines[:: max(1, len(lines) // 128)][:128]]
    ids = [tokenizer.ids(text)[:126] for text in texts]
    batches: list[tuple[Tensor, Tensor]] = []
    for first in range(0, len(ids) - 31, 32):
        part = ids[first : first + 32]
        longest = max(map(len, part)) + 2
        padded = torch.zeros(len(part), longest, dtype=torch.int64)
        for row, pieces in zip(padded, part, strict=True):
            row[: len(pieces) + 2] = torch.tensor([101, *pieces, 102])
        batches.append((padded, (padded > 0).long()))
    full = sum(int(mask.sum()) for _, mask in batches) / sum(mask.numel() for _, mask in batches)

    def steps(*, unpadded: bool) -> Callable[[], None]:
        size = BertSize(vocab_size=VOCABULARY, num_layers=options.layers)
        model = BertForClassification(size, 2, unpadded=unpadded).train()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-5, fused=True)

        def run() -> None:
            for number, (pieces, mask) in enumerate(batches):
                set_random_position(model, number, 0)
                logits = model(pieces, torch.zeros_like(pieces), mask)
                functional.cross_entropy(logits, pieces[:, 1] % 2).backward()
                optimizer.step()
                optimizer.zero_grad()

        return run

    variants = {"unpadded": steps(unpadded=True), "padded to the longest": steps(unpadded=False)}
    title = (
        f"classification, {options.layers} layers, {len(batches)} batches of 32, "
        f"{100 * full:.0f} % of the padded tokens are tokens, float32"
    )
    report(title, take_turns(variants, options.rounds), "padded to the longest")


COMPARISONS = {"step": compare_steps, "nezha": compare_nezha, "padding": compare_padding}


def main() -> None:
    """Read the options and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=list(COMPARISONS), help="print one table")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=16, help="samples of 128 word pieces")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="threads of an operation")
    parser.add_argument("--texts", type=Path, help="a tab-separated file, the text last")
    parser.add_argument("--vocab", type=Path, help="its vocab.txt")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {options.threads} thread(s)")
    for name, compare in COMPARISONS.items():
        if name == "padding" and options.texts is None and options.only is None:
            continue
        if options.only in (None, name):
            compare(options)


if __name__ == "__main__":
    main()
