"""The cost of a dumped training step beside a bare one, and of msprobe's where it is installed.

    python benchmarks/precision_dump.py
    python benchmarks/precision_dump.py --network resnext50 --batch 2 --rounds 5
    python benchmarks/precision_dump.py --bf16

Kinds of step take turns over one network and one batch, in one process: bare; dumps of modules, of
ops with the four statistics that msprobe has (min, max, mean, norm), with counts as well, and with
tensors. `+ parameters` adds parameters, gradients, the optimizer's state and updates, which msprobe
has none of. Time is the process's CPU time, with writing; medians are compared. msprobe comes last,
a process a level, after bare steps of that process, since it leaves torch's functions wrapped.

msprobe needs an environment of its own: `pip install torch==2.13.0 mindstudio-probe safetensors`,
and then `PYTHONPATH=src` before that environment's Python. Exit code 1 if a median is above what is
allowed.
"""

import argparse
import contextlib
import importlib.util
import io
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import jumar.precision
from jumar.models.resnext import ResNeXt50

ALLOWED = {"modules": 1.15, "ops, 4 statistics": 1.5, "ops, counts": 2.5, "tensors": 4.0}
KINDS: dict[str, dict[str, Any]] = {
    "modules": {"level": "modules", "counts": False, "parameters": False},
    "ops, 4 statistics": {"counts": False, "parameters": False},
    "ops, counts": {"parameters": False},
    "tensors": {"level": "tensors", "parameters": False},
    "modules + parameters": {"level": "modules", "counts": False},
    "ops, counts + parameters": {},
    "tensors + parameters": {"level": "tensors"},
}


class Block(nn.Module):
    """A layer of BERT."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(size, size) for _ in range(4))
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2))
        self.gelu, self.dropout = nn.GELU(), nn.Dropout(0.1)

    def forward(self, rows: Tensor) -> Tensor:
        """Attention and the dense part, each added to what came in."""
        batch, length, size = rows.shape
        query, key, value = (
            layer(rows).view(batch, length, self.heads, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) / (size // self.heads) ** 0.5
        mixed = (self.dropout(scores.softmax(-1)) @ value).transpose(1, 2).reshape(rows.shape)
        rows = self.norms[0](rows + self.dropout(self.out(mixed)))
        return self.norms[1](rows + self.dropout(self.down(self.gelu(self.up(rows)))))


class MiniBert(nn.Module):
    """Four layers of 256, with a head that predicts words."""

    def __init__(self, words: int = 1000) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, 256), nn.Embedding(64, 256)
        self.norm = nn.LayerNorm(256)
        self.layers = nn.ModuleList(Block(256, 4) for _ in range(4))
        self.head = nn.Linear(256, words)

    def forward(self, words: Tensor) -> Tensor:
        """The logits of every word."""
        rows = self.norm(self.words(words) + self.places.weight)
        for layer in self.layers:
            rows = layer(rows)
        return self.head(rows).flatten(0, 1)


def bench(network: str, batch: int, size: int) -> tuple[nn.Module, Tensor, Tensor]:
    """A network, its input and its targets."""
    torch.manual_seed(0)
    if network == "mini-bert":
        words = torch.randint(1000, (batch, 64))
        return MiniBert(), words, words.flatten()
    net = ResNeXt50(num_classes=1000)
    return net, torch.randn(batch, 3, size, size), torch.randint(1000, (batch,))


class Steps:
    """Steps of every kind, and what each took."""

    def __init__(self, net: nn.Module, images: Tensor, labels: Tensor, *, bf16: bool) -> None:
        self.net, self._images, self._labels, self._bf16 = net, images, labels, bf16
        self._optimizer = torch.optim.SGD(net.parameters(), 0.01)
        self.seconds: dict[str, list[float]] = {}
        self.sizes: dict[str, tuple[int, int]] = {}

    def step(self) -> None:
        """Forward, backward and update."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self._bf16):
            loss = F.cross_entropy(self.net(self._images), self._labels)
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad()

    def timed(self, kind: str, run: Callable[[], None], folder: Path | None = None) -> None:
        """Run a step and note its time and what it wrote."""
        start = time.process_time()
        run()
        self.seconds.setdefault(kind, []).append(time.process_time() - start)
        if folder is not None:
            files = [path for path in folder.rglob("*") if path.is_file()]
            self.sizes[kind] = (len(files), sum(path.stat().st_size for path in files))
            shutil.rmtree(folder)

    def ours(self, kind: str, options: dict[str, Any], folder: Path) -> None:
        """A step that jumar dumps."""

        def run() -> None:
            with jumar.precision.dump(folder, model=self.net, **options):
                self.step()

        with contextlib.redirect_stderr(io.StringIO()):
            self.timed(kind, run, folder)

    def msprobe(self, level: str, task: str, rounds: int) -> None:
        """Steps that msprobe dumps, after bare ones: it leaves torch's functions wrapped."""
        from msprobe.pytorch import PrecisionDebugger  # pyright: ignore[reportMissingImports]

        for _ in range(rounds):
            self.timed("bare", self.step)
        with tempfile.TemporaryDirectory() as name:
            debugger: Any = PrecisionDebugger(task=task, level=level, dump_path=name)

            def run() -> None:
                debugger.start(self.net)
                self.step()
                debugger.stop()
                debugger.step()

            for _ in range(rounds + 1):
                self.timed("msprobe", run)
            del self.seconds["msprobe"][0]
            files = [path for path in Path(name).rglob("*") if path.is_file()]
            size = sum(path.stat().st_size for path in files)
            self.sizes["msprobe"] = (len(files) // (rounds + 1), size // (rounds + 1))

    def show(self) -> bool:
        """Print the table; returns whether every aim is reached."""
        bare = statistics.median(self.seconds["bare"])
        print(f"{'':28}{'CPU ms':>9}{'times bare':>12}{'aim':>7}{'files':>7}{'MB':>8}")
        good = True
        for kind, seconds in self.seconds.items():
            ratio = statistics.median(seconds) / bare
            aim = ALLOWED.get(kind)
            good &= aim is None or ratio <= aim
            files, size = self.sizes.get(kind, (0, 0))
            wrote = f"{files:7}{size / 1e6:8.1f}" if files else ""
            print(f"{kind:28}{1000 * ratio * bare:9.1f}{ratio:12.2f}{aim or '':>7}{wrote}")
        return good


def compared(arguments: Sequence[str], level: str, task: str) -> str:
    """A row of the table about msprobe, from a process of its own."""
    command = [sys.executable, __file__, *arguments, "--msprobe-only", level, task]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [line for line in done.stdout.splitlines() if line.startswith("msprobe ")]
    return rows[-1] if done.returncode == 0 and rows else f"msprobe {level} {task}: failed"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", choices=["mini-bert", "resnext50"], default="mini-bert")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--msprobe-only", nargs=2, metavar=("LEVEL", "TASK"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    steps = Steps(*bench(options.network, options.batch, options.size), bf16=options.bf16)
    steps.step()
    if options.msprobe_only:
        level, task = options.msprobe_only
        steps.msprobe(level, task, options.rounds)
        steps.seconds[f"msprobe {level} {task}"] = steps.seconds.pop("msprobe")
        steps.sizes[f"msprobe {level} {task}"] = steps.sizes.pop("msprobe")
        steps.show()
        return 0
    with tempfile.TemporaryDirectory() as name:
        for number in range(options.rounds + 1):
            steps.timed("bare", steps.step)
            for kind, wanted in KINDS.items():
                steps.ours(kind, wanted, Path(name) / "dump")
            if number == 0:  # warm-up
                steps.seconds.clear()
    dtype = "bf16" if options.bf16 else "fp32"
    print(f"{options.network}, batch {options.batch}, {dtype}, torch {torch.__version__}")
    good = steps.show()
    if importlib.util.find_spec("msprobe"):
        for level in ("L0", "L1", "mix"):
            for task in ("statistics", "tensor"):
                print(compared(sys.argv[1:], level, task))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
