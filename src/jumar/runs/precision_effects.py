"""The effect of low precision on each op type of a recipe or run, measured on one step."""

import math
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jumar.ground.errors import UserError
from jumar.precision.loss_scale import FixedLossScale, NoLossScale
from jumar.precision.modes import find_mode
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.searching.attribution import Attribution, MeasuringPolicy
from jumar.precision.searching.candidates import Candidate, candidates, mixlist_of
from jumar.precision.searching.effects import Effect, effect_of
from jumar.precision.settings import PrecisionSettings
from jumar.runs.context import ChosenRun, RunContext, open_context
from jumar.runs.observed_steps import ChosenStart, SourceRequest, find_source, observing_trainer
from jumar.training.parallel.ranks import Ranks
from jumar.training.profiling.ranges import named_layers
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory, write_json
from jumar.training.trainer import Trainer

_SCALES = (2.0**15, 2.0**10, 2.0**5, 1.0)
_TIMED_ROUNDS = 6


def measure_effects(request: SourceRequest) -> list[Effect]:
    """Measure every op type that the next step of a recipe or run may compute in low precision.

    Args:
        request: The recipe or run; its `precision` sets the mode.

    Returns:
        Op types, largest change of gradients first.

    Raises:
        UserError: There is no such recipe or run, or its data cannot be read.
    """
    with _opened(request) as passes:
        return passes.all()


def keeping_costs(
    request: SourceRequest, all_candidates: Sequence[Candidate], kept: Collection[str]
) -> dict[str, float]:
    """Measure the cost of keeping each op type in float32, in low precision without emulation.

    Args:
        request: The recipe or run.
        all_candidates: All candidates.
        kept: Names of the candidates in float32.

    Returns:
        Milliseconds per forward and backward pass, by name; negative where float32 is faster.
    """
    if not kept:
        return {}
    with _opened(request) as passes:
        return passes.costs(all_candidates, kept)


def trial_recipe(
    source: ChosenStart, op_list: Path | None, seed: int, layers: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the content of `recipe.json` for a run of a search.

    Args:
        source: The recipe or run to search op lists for.
        op_list: The op list to train with; None for float32 without a loss scale.
        seed: The recipe's seed.
        layers: Layers that stay in float32 besides those of the recipe.
    """
    if op_list is None:
        precision = PrecisionSettings(loss_scale=NoLossScale())
    else:
        source_precision = source.recipe.precision
        precision = replace(
            source_precision,
            modify_mixlist=str(op_list.absolute()),
            float32_layers=(*source_precision.float32_layers, *layers),
        )
    recipe = replace(source.recipe, precision=precision, seed=seed)
    chosen = ChosenRun(
        run=RunDirectory(Path()), recipe=recipe, name=source.name, imports=source.imports
    )
    return chosen.recorded()


@contextmanager
def _opened(request: SourceRequest) -> Generator["_Passes"]:
    with (
        open_context(
            lambda ranks: _chosen(request, ranks), device=request.device, writes=False
        ) as context,
        tempfile.TemporaryDirectory() as folder,
    ):
        chosen = context.chosen
        training = replace(chosen.plan.training, compile=False)
        plan = replace(chosen.plan, training=training)
        task = context.build_task(chosen.recipe)
        trainer = observing_trainer(context, task, plan, [], Console(silent=True))
        with trainer.at_step(chosen.first, chosen.checkpoint) as (stepper, batch):
            yield _Passes(Path(folder), context, trainer, lambda: stepper.rehearse(batch))


def _chosen(request: SourceRequest, ranks: Ranks) -> ChosenStart:
    source = find_source(request, ranks)
    _low_of(source.recipe.precision)
    return source


class _Passes:
    """Forward and backward passes of one batch in different precisions."""

    def __init__(
        self,
        folder: Path,
        context: RunContext[ChosenStart],
        trainer: Trainer,
        run_pass: Callable[[], tuple[Tensor, Sequence[Tensor | None]]],
    ) -> None:
        self._list = folder / "list.json"
        self._trainer, self._run_pass = trainer, run_pass
        self._device = context.device
        self._precision = context.chosen.recipe.precision
        self._low = _low_of(self._precision)
        has_scale = not isinstance(self._precision.loss_scale, NoLossScale)
        self._scales = _SCALES if has_scale else (1.0,)
        exact = self._gradients(replace(self._precision, mode="origin", modify_mixlist=None), 1.0)
        if exact is None:
            raise UserError(
                "the loss is not finite in float32",
                where=context.chosen.name,
                todo="Choose a recipe or checkpoint that trains in float32.",
            )
        self._exact = exact

    def all(self) -> list[Effect]:
        """Return the effect of each candidate, largest change of gradients first."""
        policy = MeasuringPolicy(device_type=self._device.torch.type)
        task = self._trainer.task
        attribution = Attribution(
            policy.device_type,
            self._low,
            {"": task.model, **named_layers(task.model, task.objectives)},
        )
        self._trainer.state.policy = policy
        with attribution.measuring():
            self._run_pass()
        rows = attribution.rows()
        all_candidates = candidates(dict.fromkeys(row.op for row in rows if row.elements))
        names = {candidate.name for candidate in all_candidates}
        errors = [
            self._error(all_candidates, names - {candidate.name}) for candidate in all_candidates
        ]
        effects = [
            effect_of(candidate, [row for row in rows if row.op in candidate.ops], error)
            for candidate, error in zip(all_candidates, errors, strict=True)
        ]
        return sorted(effects, key=lambda effect: (-effect.gradient_error, -effect.loss_change))

    def costs(self, all_candidates: Sequence[Candidate], kept: Collection[str]) -> dict[str, float]:
        """Return the cost of each kept candidate in milliseconds per pass."""
        settings = replace(self._precision, emulate_fp16=False)
        lists = {name: mixlist_of(all_candidates, set(kept) - {name}) for name in ["", *kept]}
        seconds: dict[str, list[float]] = {name: [] for name in lists}
        for _ in range(_TIMED_ROUNDS):
            for name, content in lists.items():
                write_json(self._list, content)
                seconds[name].append(self._timed(settings))
        # The minimum, since other load on the machine only makes a pass slower.
        fastest = {name: min(values) for name, values in seconds.items()}
        return {name: 1000 * (fastest[""] - fastest[name]) for name in kept}

    def _error(self, all_candidates: Sequence[Candidate], float32_names: Collection[str]) -> float:
        """Return the relative change of gradients, at the largest scale that keeps them finite."""
        write_json(self._list, mixlist_of(all_candidates, float32_names))
        error = math.inf
        for scale in self._scales:
            gradients = self._gradients(self._precision, scale)
            error = math.inf if gradients is None else _distance(gradients, self._exact)
            if math.isfinite(error):
                break
        return error

    def _gradients(self, settings: PrecisionSettings, scale: float) -> list[Tensor] | None:
        """Return the gradients without the loss scale; None if the loss is not finite."""
        with self._policy(settings, scale):
            loss, scaled = self._run_pass()
        if not loss.isfinite().item():
            return None
        return [gradient.float() / scale for gradient in scaled if gradient is not None]

    def _timed(self, settings: PrecisionSettings) -> float:
        with self._policy(settings, 1.0):
            self._device.synchronize()
            start = time.perf_counter()
            self._run_pass()
            self._device.synchronize()
            return time.perf_counter() - start

    @contextmanager
    def _policy(self, settings: PrecisionSettings, scale: float) -> Generator[None]:
        mode = find_mode(settings.mode)
        settings = replace(
            settings,
            modify_mixlist=str(self._list) if mode.uses_lists else None,
            loss_scale=FixedLossScale(init_loss_scale=scale),
        )
        policy = PrecisionPolicy(settings, device_type=self._device.torch.type)
        policy.install()
        self._trainer.state.policy = policy
        try:
            yield
        finally:
            policy.close()


def _low_of(settings: PrecisionSettings) -> torch.dtype:
    """Return the low-precision dtype of a mode with op lists.

    Raises:
        UserError: The mode has no op lists.
    """
    mode = find_mode(settings.mode)
    if not mode.uses_lists or mode.low is None:
        raise UserError(
            f"the mode '{mode.name}' has no op lists",
            where="precision.mode",
            todo="Add --set precision.mode=allow_mix_precision or allow_mix_precision_bf16.",
        )
    return mode.low


def _distance(gradients: Sequence[Tensor], exact: Sequence[Tensor]) -> float:
    """Return the norm of the difference over the exact norm; infinity if it is not finite."""
    difference = sum(
        (gradient - exact_gradient).double().square().sum().item()
        for gradient, exact_gradient in zip(gradients, exact, strict=True)
    )
    norm = sum(gradient.double().square().sum().item() for gradient in exact)
    error = math.sqrt(difference / norm) if norm else math.inf * (difference > 0)
    return error if math.isfinite(error) else math.inf
