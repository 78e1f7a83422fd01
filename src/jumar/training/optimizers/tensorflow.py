"""Optimizers of TensorFlow and of the Ascend scripts that torch does not have.

They differ from torch's optimizers of the same name in where epsilon is added, in the initial
averages and in the bias correction. Like torch's, they keep their state in `state_dict()`, update
whole lists of tensors at once, and use torch's fused kernels if the device has them.
"""

# Torch documents its list functions and fused kernels under these names but does not export them.
# pyright: reportPrivateImportUsage=false

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

Groups = Iterable[Mapping[str, Any]]
"""Parameter groups with the keys `params` and `weight_decay`."""


class TensorFlowOptimizer(Optimizer):
    """The base class, which creates the state and iterates over groups.

    The state is created at once and not in the first step, because a kernel on the device may skip
    the first step.
    """

    def __init__(
        self, groups: Groups, defaults: dict[str, Any], slots: Mapping[str, float]
    ) -> None:
        super().__init__([dict(group) for group in groups], defaults)
        self._slots = tuple(slots)
        for group in self.param_groups:
            for parameter in group["params"]:
                for name, start in slots.items():
                    self.state[parameter][name] = torch.full_like(
                        parameter, start, memory_format=torch.preserve_format
                    )

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, closure: Callable[[], float] | None = None
    ) -> float | None:
        """Update every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                self.update_group(group)
        return loss

    @abstractmethod
    def update_group(self, group: dict[str, Any]) -> None:
        """Update the parameters of one group."""

    def lists(self, group: dict[str, Any]) -> list[list[list[Tensor]]]:
        """Lists of the group's parameters, their gradients and each slot, in the same order.

        There is a set of lists for each dtype in the group, because list kernels accept only one.
        """
        by_dtype: dict[torch.dtype, list[list[Tensor]]] = {}
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            rows = by_dtype.setdefault(parameter.dtype, [[] for _ in range(2 + len(self._slots))])
            state = self.state[parameter]
            rows[0].append(parameter)
            rows[1].append(parameter.grad)
            for row, name in zip(rows[2:], self._slots, strict=True):
                row.append(state[name])
        return list(by_dtype.values())


class TfAdam(TensorFlowOptimizer):
    """tf.train.AdamOptimizer and, without bias correction, BERT's AdamWeightDecayOptimizer.

    TensorFlow adds epsilon outside the bias correction, so that the correction is a factor on
    the learning rate: `rate = lr * sqrt(1 - beta2^t) / (1 - beta1^t)` and the step is `rate * m /
    (sqrt(v) + epsilon)`. Torch's kernels put epsilon inside. They are called with the step at
    infinity, where their own correction is 1, and with the corrected rate as the learning rate.

    The number of updates t is a tensor on the device: an update that the kernel skips because of
    an overflow does not count, and the host need not wait for the device to find out.

    Args:
        groups: Parameter groups; weight decay is added to the gradient, as an L2 loss would do,
            or with `decoupled` to the step.
        lr: Learning rate.
        betas: Decay of the averages of the gradients and of their squares.
        epsilon: Added to the root of the average of squares.
        corrected: Whether to correct for the averages' start at zero.
        decoupled: Whether to decay as BERT does; not with the correction, which would scale the
            decay too.
        fused: Whether to use torch's fused kernel, which the device must have.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        lr: float,
        betas: tuple[float, float],
        epsilon: float,
        corrected: bool,
        decoupled: bool,
        fused: bool,
    ) -> None:
        if corrected and decoupled:
            raise ValueError("decoupled decay with bias correction is torch.optim.AdamW")
        if corrected:
            # tf.train computes 1 - beta from a float32 beta, and BERT from Python's float: for
            # 0.999 this is 0.00099999 or 0.001, and the averages of squares differ accordingly.
            betas = (_float32(betas[0]), _float32(betas[1]))
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": epsilon,
            "weight_decay": 0.0,
            "decoupled_weight_decay": decoupled,
            "fused": fused,
        }
        super().__init__(groups, defaults, {"exp_avg": 0.0, "exp_avg_sq": 0.0})
        self._step_supports_amp_scaling = fused
        self._infinity: dict[torch.device, Tensor] = {}
        for group in self.param_groups:
            group["updates"] = _update_counter(group) if corrected else None

    def update_group(self, group: dict[str, Any]) -> None:
        """See `TensorFlowOptimizer.update_group`."""
        lists = self.lists(group)
        if not lists:
            return
        rate: float | Tensor = group["lr"]
        updates: Tensor | None = group["updates"]
        if updates is not None:
            correction1, correction2 = _corrections(updates.add_(1.0), group["betas"])
            rate = rate * correction2.sqrt() / correction1
        if not group["fused"]:
            for rows in lists:
                _update_adam(group, rate, *rows)
            return
        found_inf: Tensor | None = getattr(self, "found_inf", None)
        for rows in lists:
            self._update_fused(group, rate, found_inf, *rows)
        if updates is not None and found_inf is not None:
            updates.sub_(found_inf)

    def _update_fused(
        self,
        group: dict[str, Any],
        rate: float | Tensor,
        found_inf: Tensor | None,
        params: list[Tensor],
        grads: list[Tensor],
        averages: list[Tensor],
        squares: list[Tensor],
    ) -> None:
        device = params[0].device
        if device not in self._infinity:
            self._infinity[device] = torch.full((), math.inf, device=device)
        kernel = torch._fused_adamw_ if group["decoupled_weight_decay"] else torch._fused_adam_
        beta1, beta2 = group["betas"]
        kernel(
            params,
            grads,
            averages,
            squares,
            [],
            [self._infinity[device]] * len(params),
            lr=rate,  # pyright: ignore[reportArgumentType]
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=found_inf,
        )


class TfLamb(TensorFlowOptimizer):
    """LAMB (You et al., arXiv 1904.00962) as the Ascend BERT scripts compute it.

    Per tensor: `r = m' / (sqrt(v') + epsilon) + weight_decay * p` and `p -= lr * |p| / |r| * r`,
    where the ratio is 1 if one of the norms is 0, and m' and v' are the corrected averages.

    The scripts' correction counts variables while the graph is built, instead of counting steps, so
    the k-th variable is corrected with exponent k at every step; `exponents` reproduces this.

    Args:
        groups: Parameter groups with `params` and `weight_decay`.
        lr: Learning rate.
        betas: Decay of the averages of the gradients and of their squares.
        epsilon: Added to the root of the average of squares.
        corrected: Whether to correct with the number of updates.
        exponents: The constant exponent of each parameter's correction; empty for no correction.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        lr: float,
        betas: tuple[float, float],
        epsilon: float,
        corrected: bool,
        exponents: Mapping[nn.Parameter, int],
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": epsilon,
            "weight_decay": 0.0,
            "decoupled_weight_decay": True,
        }
        super().__init__(groups, defaults, {"exp_avg": 0.0, "exp_avg_sq": 0.0})
        for group in self.param_groups:
            group["updates"] = _update_counter(group) if corrected else None
            for parameter in group["params"]:
                self.state[parameter]["exponent"] = exponents.get(parameter)

    def update_group(self, group: dict[str, Any]) -> None:
        """See `TensorFlowOptimizer.update_group`."""
        updates: Tensor | None = group["updates"]
        if updates is not None:
            updates.add_(1.0)
        for params, grads, averages, squares in self.lists(group):
            _average(group["betas"], grads, averages, squares)
            steps, roots = self._corrected(group, params, averages, squares)
            torch._foreach_sqrt_(roots)
            torch._foreach_add_(roots, group["eps"])
            torch._foreach_div_(steps, roots)
            if group["weight_decay"]:
                torch._foreach_add_(steps, params, alpha=group["weight_decay"])
            sizes = torch.stack(torch._foreach_norm(params, 2, dtype=torch.float32))
            lengths = torch.stack(torch._foreach_norm(steps, 2, dtype=torch.float32))
            ratios = torch.where((sizes > 0) & (lengths > 0), sizes / lengths, 1.0)
            torch._foreach_mul_(steps, list((ratios * group["lr"]).unbind()))
            torch._foreach_sub_(params, steps)

    def _corrected(
        self,
        group: dict[str, Any],
        params: Sequence[Tensor],
        averages: list[Tensor],
        squares: list[Tensor],
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The averages and the averages of squares, both corrected, as new tensors."""
        updates: Tensor | None = group["updates"]
        if updates is not None:
            correction1, correction2 = _corrections(updates, group["betas"])
            return (
                list(torch._foreach_div(averages, correction1)),
                list(torch._foreach_div(squares, correction2)),
            )
        exponents: list[int | None] = [self.state[p]["exponent"] for p in params]
        beta1, beta2 = group["betas"]
        first = [1.0 if k is None else 1.0 - beta1**k for k in exponents]
        second = [1.0 if k is None else 1.0 - beta2**k for k in exponents]
        return (
            list(torch._foreach_div(averages, first)),
            list(torch._foreach_div(squares, second)),
        )


class TfRmsProp(TensorFlowOptimizer):
    """tf.train.RMSPropOptimizer, not centred.

    Unlike in torch's, the average of squares starts at 1, epsilon is under the root, and the
    momentum accumulates steps that already include the learning rate.

    Args:
        groups: Parameter groups; weight decay is added to the gradient.
        lr: Learning rate.
        decay: Decay of the average of squares.
        momentum: Decay of the accumulated steps.
        epsilon: Added to the average of squares.
    """

    def __init__(
        self, groups: Groups, *, lr: float, decay: float, momentum: float, epsilon: float
    ) -> None:
        defaults = {
            "lr": lr,
            "alpha": decay,
            "momentum": momentum,
            "eps": epsilon,
            "weight_decay": 0.0,
        }
        super().__init__(groups, defaults, {"square_avg": 1.0, "momentum_buffer": 0.0})

    def update_group(self, group: dict[str, Any]) -> None:
        """See `TensorFlowOptimizer.update_group`."""
        decay = group["alpha"]
        for params, grads, squares, steps in self.lists(group):
            grads = _with_decay(group, params, grads)
            torch._foreach_mul_(squares, decay)
            torch._foreach_addcmul_(squares, grads, grads, 1.0 - decay)
            roots = torch._foreach_add(squares, group["eps"])
            torch._foreach_sqrt_(roots)
            torch._foreach_mul_(steps, group["momentum"])
            torch._foreach_addcdiv_(steps, grads, roots, group["lr"])
            torch._foreach_sub_(params, steps)


def _float32(value: float) -> float:
    return torch.tensor(value, dtype=torch.float32).item()


def _update_counter(group: Mapping[str, Any]) -> Tensor:
    parameters: Sequence[Tensor] = group["params"]
    return torch.zeros((), device=parameters[0].device if parameters else None)


def _corrections(updates: Tensor, betas: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """1 - beta^t for both betas.

    It is computed as `-expm1(t * log(beta))`, because the plain form has an error of 1e-5 in
    float32 in the first steps, where beta^t is close to 1.
    """
    first, second = (math.log(beta) if beta > 0.0 else -math.inf for beta in betas)
    return -torch.expm1(updates * first), -torch.expm1(updates * second)


def _with_decay(
    group: Mapping[str, Any], params: list[Tensor], grads: list[Tensor]
) -> list[Tensor]:
    if not group["weight_decay"]:
        return grads
    return list(torch._foreach_add(grads, params, alpha=group["weight_decay"]))


def _average(
    betas: tuple[float, float], grads: list[Tensor], averages: list[Tensor], squares: list[Tensor]
) -> None:
    beta1, beta2 = betas
    torch._foreach_lerp_(averages, grads, 1.0 - beta1)
    torch._foreach_mul_(squares, beta2)
    torch._foreach_addcmul_(squares, grads, grads, 1.0 - beta2)


def _update_adam(
    group: Mapping[str, Any],
    rate: float | Tensor,
    params: list[Tensor],
    grads: list[Tensor],
    averages: list[Tensor],
    squares: list[Tensor],
) -> None:
    """Adam's update for a device without a fused kernel."""
    if group["decoupled_weight_decay"]:
        torch._foreach_mul_(params, 1.0 - group["lr"] * group["weight_decay"])
    else:
        grads = _with_decay(group, params, grads)
    _average(group["betas"], grads, averages, squares)
    roots = torch._foreach_sqrt(squares)
    torch._foreach_add_(roots, group["eps"])
    steps = torch._foreach_div(averages, roots)
    torch._foreach_mul_(steps, rate)
    torch._foreach_sub_(params, steps)
