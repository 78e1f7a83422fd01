"""Plant faults into kernels of small networks, and see whether `compare` names the right op first.

    python benchmarks/planted_faults.py --seed 7 --faults 24 --healthy 10

A fault is drawn by the seed: a network, a call of an op in it (forward or backward), and what its
kernel does wrong. The candidate also runs with other kernels (oneDNN off, two threads), so that all
of its numbers differ by rounding. A pair without a fault must name no op and have under 5 % of its
values flagged. Both forms of dumps are scored: tensors, and statistics alone.
"""

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from jumar.precision.comparing.compare import compare_dumps
from jumar.precision.comparing.comparison import Comparison, call_name
from jumar.precision.dumps.dump import Call, Dump, Phase, Role, Statistics, Value

_SILENT = ("detach", "alias", "empty", "new_empty", "zeros", "ones", "fill", "lift_fresh")
"""Ops that compute nothing."""

Kernel = Callable[..., Any]
Fault = Callable[[Kernel, tuple[Any, ...], dict[str, Any]], Any]


def _outputs(result: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The result with its first float tensor changed."""
    if isinstance(result, torch.Tensor):
        return change(result)
    parts = list(cast("tuple[Any, ...]", result))
    place = next(at for at, each in enumerate(parts) if _is_float(each))
    parts[place] = change(parts[place])
    return tuple(parts)


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 1


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype).to(value.dtype) if _is_float(value) else value


def _rounded(tensor: torch.Tensor, bits: int) -> torch.Tensor:
    mantissa, exponent = torch.frexp(tensor)
    return torch.ldexp((mantissa * 2**bits).round() / 2**bits, exponent)


def half(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Operands and result pass through float16."""
    narrow = tuple(_cast(each, torch.float16) for each in args)
    return _outputs(kernel(*narrow, **kwargs), lambda out: _cast(out, torch.float16))


def transposed(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The last square operand is used transposed."""
    place = max(at for at, each in enumerate(args) if _is_square(each))
    swapped = (*args[:place], args[place].transpose(-1, -2).contiguous(), *args[place + 1 :])
    return kernel(*swapped, **kwargs)


def _is_square(value: Any) -> bool:
    return _is_float(value) and value.dim() >= 2 and value.shape[-1] == value.shape[-2]


def dropped(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The gradient is lost."""
    return _outputs(kernel(*args, **kwargs), torch.zeros_like)


def epsilon(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A norm's epsilon is 1000 times too large."""
    places = [at for at, each in enumerate(args) if isinstance(each, float) and each < 1e-3]
    return kernel(
        *(each * 1000 if at in places else each for at, each in enumerate(args)), **kwargs
    )


def scaled_twice(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A factor is applied a second time."""
    return _outputs(kernel(*args, **kwargs), lambda out: out * 0.35)


def lost_bits(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result has lost 4 bits of its mantissa."""
    bits = 5 if any(_is_float(each) and each.dtype == torch.bfloat16 for each in args) else 20
    return _outputs(kernel(*args, **kwargs), lambda out: _rounded(out, bits))


def rolled(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result is shifted by a place."""
    return _outputs(kernel(*args, **kwargs), lambda out: out.roll(1, -1))


def wrong_cast(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result passes through bfloat16."""
    return _outputs(kernel(*args, **kwargs), lambda out: _cast(out, torch.bfloat16))


def cut_short(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The last element of every row counts for nothing in the first float operand."""
    place = next(at for at, each in enumerate(args) if _is_float(each) and each.dim() > 1)
    cut = args[place].clone()
    cut[..., -1] = 0
    return kernel(*(cut if at == place else each for at, each in enumerate(args)), **kwargs)


def overflow(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The largest element becomes infinite."""

    def change(out: torch.Tensor) -> torch.Tensor:
        changed = out.clone().flatten()
        changed[changed.abs().argmax()] = torch.inf
        return changed.reshape(out.shape)

    return _outputs(kernel(*args, **kwargs), change)


def one_row(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One row is taken from its neighbour, as after a race."""

    def change(out: torch.Tensor) -> torch.Tensor:
        changed = out.clone().reshape(out.shape[0], -1)
        changed[0] = changed[-1]
        return changed.reshape(out.shape)

    return _outputs(kernel(*args, **kwargs), change)


SEEN: Mapping[str, Fault] = {
    each.__name__: each for each in (half, transposed, dropped, epsilon, scaled_twice, lost_bits)
}
"""Kinds with which limits were chosen."""
UNSEEN: Mapping[str, Fault] = {
    each.__name__: each for each in (rolled, wrong_cast, cut_short, overflow, one_row)
}
"""Kinds that were kept away until the limits stood."""
_PRODUCTS = ("addmm", "mm", "bmm", "convolution", "convolution_backward")
_SUITS: Mapping[str, Callable[[Call], bool]] = {
    "transposed": lambda call: (
        call.op.split(".")[1] in ("addmm", "mm", "bmm")
        and any(
            value.role == "input" and len(value.shape) > 1 and value.shape[-1] == value.shape[-2]
            for value in call.values
        )
    ),
    "dropped": lambda call: call.phase == "backward",
    "epsilon": lambda call: "norm" in call.op and "backward" not in call.op,
    "cut_short": lambda call: (
        call.op.split(".")[1] in ("addmm", "mm", "bmm", "_softmax", "native_layer_norm", "sum")
    ),
}


class Kept(dict[str, torch.Tensor]):
    """Tensors in memory."""

    def read(self, name: str) -> torch.Tensor:
        """See `Tensors.read`."""
        return self[name]


@dataclass
class Recorder(TorchDispatchMode):
    """Records every aten op with its tensors; replaces one kernel by a faulty one.

    Args:
        fault: The fault; None for a healthy run.
        target: Key of the call that has it.
    """

    fault: Fault | None = None
    target: tuple[str, str, str, str, int] | None = None
    layers: list[str] = field(default_factory=lambda: [""])
    calls: list[Call] = field(default_factory=list[Call])
    tensors: Kept = field(default_factory=Kept)
    is_planted: bool = False
    _numbers: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    _nodes: dict[int, str] = field(default_factory=dict[int, str])

    def __post_init__(self) -> None:
        super().__init__()

    def watch(self, model: nn.Module) -> None:
        """Follow which layer runs."""
        for name, module in model.named_modules():
            module.register_forward_pre_hook(partial(self._enter, name))
            module.register_forward_hook(self._leave)

    def _enter(self, name: str, *_: Any) -> None:
        self.layers.append(name)

    def _leave(self, *_: Any) -> None:
        self.layers.pop()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run an op, and record it."""
        kwargs = kwargs or {}
        packet = func._schema.name.removeprefix("aten::")
        if packet.startswith(_SILENT) or func._schema.is_mutable:
            return func(*args, **kwargs)
        node: Any = torch._C._current_autograd_node()  # pyright: ignore
        phase: Phase = "forward" if node is None else "backward"
        if node is None:
            layer = self.layers[-1]
            self._nodes[torch._C._autograd._get_sequence_nr() - 1] = layer  # pyright: ignore
        else:
            layer = self._nodes.get(node._sequence_nr(), "")
        op = f"aten.{packet}.{func._overloadname}"
        number = self._numbers[op, layer, phase]
        self._numbers[op, layer, phase] += 1
        inputs, arguments = self._inputs(args, kwargs, len(self.calls))
        run: Kernel = func
        if self.fault is not None and self.target == ("op", op, layer, phase, number):
            fault = self.fault

            def run(*args: Any, **kwargs: Any) -> Any:
                return fault(func, args, kwargs)

            self.is_planted = True
        result = run(*args, **kwargs)
        parts = result if isinstance(result, tuple | list) else [result]
        outputs = [
            self._value("output", str(at), each, len(self.calls))
            for at, each in enumerate(cast("list[Any]", parts))
            if isinstance(each, torch.Tensor)
        ]
        self.calls.append(
            Call(
                kind="op",
                op=op,
                layer=layer,
                number=number,
                phase=phase,
                values=(*inputs, *outputs),
                arguments=arguments,
            )
        )
        return result

    def _inputs(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], place: int
    ) -> tuple[list[Value], dict[str, str]]:
        values: list[Value] = []
        arguments: dict[str, str] = {}
        named = [(str(at), each) for at, each in enumerate(args)] + list(kwargs.items())
        for name, each in named:
            if isinstance(each, torch.Tensor):
                values.append(self._value("input", name, each, place))
            elif isinstance(each, list | tuple) and any(
                isinstance(one, torch.Tensor) for one in cast("list[Any]", each)
            ):
                for at, one in enumerate(cast("list[Any]", each)):
                    values.append(self._value("input", f"{name}.{at}", one, place))
            else:
                arguments[name] = repr(each)
        return values, arguments

    def _value(self, role: Role, name: str, tensor: torch.Tensor, place: int) -> Value:
        key = f"{place}.{role}.{name}"
        self.tensors[key] = tensor.detach().clone()
        return Value(
            role=role,
            name=name,
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tuple(tensor.shape),
            statistics=_statistics(tensor),
            tensor=key,
        )

    def dump(self) -> Dump:
        """What was recorded."""
        return Dump(where=Path("memory"), tool="planted", calls=self.calls, tensors=self.tensors)


def _statistics(tensor: torch.Tensor) -> Statistics:
    wide = tensor.detach().double()
    if not wide.numel():
        return Statistics(count=0)
    finite = wide[wide.isfinite()]
    return Statistics(
        count=wide.numel(),
        min=finite.min().item() if finite.numel() else None,
        max=finite.max().item() if finite.numel() else None,
        mean=finite.mean().item() if finite.numel() else None,
        l2=finite.norm().item(),
        nan=int(wide.isnan().sum()),
        inf=int(wide.isinf().sum()),
    )


class Attention(nn.Module):
    """Two heads over the last axis."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend."""
        shape = (*x.shape[:2], 2, -1)
        q, k, v = (
            each(x).reshape(shape).transpose(1, 2) for each in (self.query, self.key, self.value)
        )
        weights = ((q @ k.transpose(-1, -2)) * 0.25).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(x.shape))


class Encoder(nn.Module):
    """A layer of a transformer with its norms behind, as BERT's."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention, self.norm = Attention(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.final = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Encode."""
        x = self.norm(x + self.attention(x))
        return self.final(x + self.narrow(nn.functional.gelu(self.wide(x))))


class Residual(nn.Module):
    """Two convolutions, the second by channel, with batch norms and a short cut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve."""
        return torch.relu(x + self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))))


def _network(name: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A network with a batch and its labels."""
    if name == "transformer":
        model = nn.Sequential(
            nn.Embedding(50, 32), Encoder(32), Encoder(32), nn.Flatten(), nn.Linear(32 * 12, 10)
        )
        data = torch.randint(0, 50, (4, 12))
    elif name == "convolutions":
        model = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            Residual(16),
            nn.MaxPool2d(2),
            Residual(16),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(64, 10),
        )
        data = torch.randn(4, 3, 16, 16)
    else:
        widths = [24, 32, 32, 32, 10]
        layers = [
            part
            for first, second in pairwise(widths)
            for part in (nn.Linear(first, second), nn.Tanh(), nn.LayerNorm(second))
        ]
        model, data = nn.Sequential(*layers[:-2]), torch.randn(16, 24)
    return model, data, torch.randint(0, 10, (data.shape[0],))


NETWORKS = ("transformer", "convolutions", "perceptron")


def record(
    network: str,
    seed: int,
    *,
    other_kernels: bool = False,
    bfloat16: bool = False,
    fault: Fault | None = None,
    target: tuple[str, str, str, str, int] | None = None,
) -> Recorder:
    """Run a step of a network and record it."""
    torch.manual_seed(seed)
    model, data, labels = _network(network)
    recorder = Recorder(fault=fault, target=target)
    recorder.watch(model)
    torch.set_num_threads(2 if other_kernels else 1)
    with (
        torch.backends.mkldnn.flags(enabled=not other_kernels),  # pyright: ignore
        recorder,
        torch.autocast("cpu", torch.bfloat16, enabled=bfloat16),
    ):
        loss = nn.functional.cross_entropy(model(data).float(), labels)
    with torch.backends.mkldnn.flags(enabled=not other_kernels), recorder:  # pyright: ignore
        loss.backward()  # pyright: ignore
    torch.set_num_threads(1)
    return recorder


def without_tensors(dump: Dump) -> Dump:
    """The same dump with statistics alone."""
    return Dump(where=dump.where, tool=dump.tool, calls=dump.calls)


def planted(
    draw: random.Random, kinds: Mapping[str, Fault], *, bfloat16: bool
) -> tuple[str, str, Dump, Dump]:
    """Draw a fault; the kind, the name of the faulty call, the healthy and the faulty dump."""
    while True:
        kind = draw.choice(sorted(kinds))
        network, seed = draw.choice(NETWORKS), draw.randrange(1000)
        before = record(network, seed)
        # The candidate's own calls: under autocast some are of other dtypes.
        plan = record(network, seed, other_kernels=True, bfloat16=bfloat16)
        suits = _SUITS.get(kind, lambda _: True)
        known = {call.key for call in before.calls}
        choices = [
            call
            for call in plan.calls
            if call.key in known and suits(call) and _computes(call) and call.layer
        ]
        if not choices:
            continue
        target = draw.choice(choices).key
        after = record(
            network, seed, other_kernels=True, bfloat16=bfloat16, fault=kinds[kind], target=target
        )
        if after.is_planted and _has_effect(before, plan, after, target):
            name = call_name(next(call for call in after.calls if call.key == target))
            return f"{kind} in {network}", name, before.dump(), after.dump()


def _computes(call: Call) -> bool:
    """Whether a call does more than move numbers."""
    moves = ("view", "t.", "transpose", "reshape", "expand", "slice", "_to_copy", "clone", "unsafe")
    moves += ("_unsafe_view", "select", "permute", "squeeze", "unsqueeze", "split", "mul.Tensor_")
    is_float = any(
        value.role == "output" and value.dtype in ("float32", "bfloat16") and len(value.shape) > 0
        for value in call.values
    )
    return is_float and not call.op.removeprefix("aten.").startswith(moves)


def _has_effect(
    before: Recorder, plan: Recorder, after: Recorder, target: tuple[str, str, str, str, int]
) -> bool:
    """Whether the faulty call's output changes by more than what other kernels change of it.

    A gradient that is zero in theory may be lost without any effect.
    """
    healthy = _output(before, target), _output(plan, target)
    faulty = _output(after, target)
    changes = [(one.double() - two.double()).norm() for one, two in (healthy, (healthy[1], faulty))]
    return not faulty.isfinite().all() or bool(changes[1] > 2 * changes[0])


def _output(recorder: Recorder, target: tuple[str, str, str, str, int]) -> torch.Tensor:
    """All float outputs of a call."""
    call = next(call for call in recorder.calls if call.key == target)
    tensors = [
        recorder.tensors[value.tensor].float().flatten()
        for value in call.values
        if value.role == "output" and value.tensor and "float" in value.dtype
    ]
    return torch.cat(tensors)


def _first(comparison: Comparison) -> str:
    return comparison.offenders[0].name if comparison.offenders else "none"


def main() -> None:
    """Draw, compare, score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=int, default=24)
    parser.add_argument("--healthy", type=int, default=10)
    parser.add_argument("--kinds", choices=("seen", "unseen", "all"), default="all")
    parser.add_argument("--bfloat16", action="store_true", help="faults under autocast")
    options = parser.parse_args()
    kinds = {"seen": SEEN, "unseen": UNSEEN, "all": {**SEEN, **UNSEEN}}[options.kinds]
    draw = random.Random(options.seed)
    score: defaultdict[str, int] = defaultdict(int)
    for _ in range(options.faults):
        what, right, before, after = planted(draw, kinds, bfloat16=options.bfloat16)
        firsts: dict[str, str] = {}
        for form, compared in (
            ("tensors", compare_dumps(before, after)),
            ("statistics", compare_dumps(without_tensors(before), without_tensors(after))),
        ):
            firsts[form] = _first(compared)
            score[form] += firsts[form] == right
        wrong = {form: name for form, name in firsts.items() if name != right}
        print(
            f"{'ok  ' if not wrong else 'MISS'} {what}: {right}" + (f"; {wrong}" if wrong else "")
        )
    for form in ("tensors", "statistics"):
        print(f"{form}: {score[form]} of {options.faults} faults named first")
    for number in range(options.healthy):
        network, seed = draw.choice(NETWORKS), draw.randrange(1000)
        before = record(network, seed).dump()
        after = record(network, seed, other_kernels=True, bfloat16=number % 2 == 1).dump()
        for form, pair in (
            ("tensors", (before, after)),
            ("statistics", (without_tensors(before), without_tensors(after))),
        ):
            compared = compare_dumps(*pair)
            share = compared.flagged / max(compared.rows, 1)
            highest = max(compared.calls, key=lambda call: call.ratio)
            print(
                f"{'FALSE' if compared.offenders or share > 0.05 else 'ok  '} healthy {network}"
                f"{' bfloat16' if number % 2 else ''}, {form}: named {_first(compared)}, flagged"
                f" {share:.1%}, highest ratio {highest.ratio:.2g} at {highest.name}"
            )


if __name__ == "__main__":
    main()
