"""Finds the fastest combination of knobs, racing one at a time against the best so far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from jumar.experiments.tuning.bench import BLOCK_S, Bench
from jumar.experiments.tuning.bottleneck import Facts, Limit, limits
from jumar.experiments.tuning.clock import Clock
from jumar.experiments.tuning.journal import Comparison, Journal, Outcome
from jumar.experiments.tuning.knobs import COMPILE, Choice, Combination
from jumar.experiments.tuning.measured_process import Block, NotMeasured
from jumar.experiments.tuning.pairs import (
    MIN_PAIRS,
    PROMISING,
    Pair,
    Speedup,
    Verdict,
    is_faster,
    judge,
    speedup,
)
from jumar.experiments.tuning.result import START, Found, Tried, tried_line
from jumar.ground.errors import UserError
from jumar.ground.text import counted

MAX_PAIRS: Final = 12
MAX_PAIRS_IF_PROMISING: Final = 36
NOISE_PAIRS: Final = 5
SITTINGS: Final = 4
"""How often both settings are restarted for the confirmation: two processes with equal settings may
differ permanently, because of the memory pages they got."""
MAX_SITTINGS: Final = 8
"""The same if the gain is large and its interval still contains 1."""
PAIRS_A_SITTING: Final = 4
_COMPILE_S: Final = 120.0
_HOPELESS: Final = 0.9
"""A choice certainly slower than this is not tried again with others."""
_BEST, _CANDIDATE, _TWIN = "best", "candidate", "twin"


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """What a search needs.

    Attributes:
        bench: Where settings are measured.
        journal: What was measured before.
        clock: The time left.
        choices: The choices worth trying, from the measurement of the start and its bottlenecks.
        allow_rounding: Whether the weights may round differently.
        say: Prints a line.
    """

    bench: Bench
    journal: Journal
    clock: Clock
    choices: Callable[[Facts, Sequence[Limit]], Sequence[Choice]]
    allow_rounding: bool
    say: Callable[[str], None]


class SpeedSearch:
    """Searches; `found` is usable however the search ends.

    Args:
        plan: What it needs.
    """

    def __init__(self, plan: SearchPlan) -> None:
        self._plan = plan
        self._bench, self._journal, self._clock = plan.bench, plan.journal, plan.clock
        self._hashes: Mapping[str, str] = {}
        self._start_hashes: Mapping[str, str] = {}
        self.found = Found()

    def run(self) -> Found:
        """Measure the baseline, race the choices, confirm the best.

        Raises:
            UserError: The start cannot be trained.
        """
        try:
            self._measure_start()
            self._race_all()
            self._confirm()
        except KeyboardInterrupt:
            self.found.interrupted = True
        finally:
            self._bench.close()
        return self.found

    def _measure_start(self) -> None:
        result, journal = self.found, self._journal
        recorded = journal.found((), ())
        if recorded is None or journal.facts is None:
            facts, comparison = self._start_measured()
            journal.keep_facts(asdict(facts))
            journal.add(comparison)
        else:
            facts, comparison = Facts(**journal.facts), recorded
        self._bench.step_s = facts.step_s
        self._bench.steps = max(1, round(BLOCK_S / facts.step_s))
        # Free memory is measured next to one process of the start.
        self._bench.apart |= facts.memory_bytes > 0.9 * facts.memory_free_bytes
        result.facts, result.limits = facts, limits(facts)
        result.noise = speedup(comparison.pairs)
        result.reproducible = comparison.outcome != "changes the weights"
        self._hashes = self._start_hashes = comparison.hashes
        self._say_start()

    def _start_measured(self) -> tuple[Facts, Comparison]:
        """Two processes of the baseline: its bottleneck, and how much equal settings differ."""
        bench = self._bench
        try:
            first, second = bench.ready((_BEST, START), (_TWIN, START))
            bench.step_s = bench.block(_BEST, START).step_s
            bench.block(_TWIN, START)
            bench.steps = max(1, round(BLOCK_S / bench.step_s))
            pairs: list[Pair] = []
            blocks: list[Block] = []
            for number in range(NOISE_PAIRS):
                turned = bool(number % 2)
                pair, pair_blocks = bench.pair((_BEST, START), (_TWIN, START), turned=turned)
                pairs.append(pair)
                blocks += pair_blocks
        except NotMeasured as error:
            if not bench.apart:
                # There may be memory for only one of them.
                bench.apart = True
                return self._start_measured()
            raise UserError(
                f"the settings to start from cannot be measured: {error}",
                todo="Check them with: jumar train RECIPE --dry-run",
            ) from None
        bench.end(_TWIN)
        has_same_weights = first["hashes"] == second["hashes"]
        return _facts(first, blocks), Comparison(
            against=(),
            candidate=(),
            outcome="undecided" if has_same_weights else "changes the weights",
            pairs=tuple(pairs),
            hashes=first["hashes"],
            memory_bytes=first["memory_bytes"],
        )

    def _say_start(self) -> None:
        result, say = self.found, self._plan.say
        facts, noise = result.facts, result.noise
        assert facts is not None
        assert noise is not None
        say(
            f"start: {1000 * facts.step_s:.1f} ms a step on {facts.device_name}, "
            f"{counted(facts.threads, 'thread')}, {counted(facts.workers, 'loader process')}; two "
            f"processes with these settings differ by {noise.ratio - 1:+.1%} "
            f"({noise.low - 1:+.1%} to {noise.high - 1:+.1%})"
        )
        for limit in result.limits:
            say(f"limit: {limit.kind}: {limit.reason}")
        if not result.reproducible:
            say(
                "two processes of the start have different weights after the same steps, so no "
                "setting can be shown to leave them unchanged; training.deterministic=true may help"
            )

    def _race_all(self) -> None:
        result = self.found
        assert result.facts is not None
        choices = list(self._plan.choices(result.facts, result.limits))
        for choice in choices:
            self._try(choice)
        for choice in choices:
            if self._is_worth_repeating(choice):
                self._try(choice)
        together = self._together()
        if together is not None:
            self._try(together)

    def _together(self) -> Choice | None:
        """The undecided choices that seem to help, combined; None if fewer than two.

        A single gain of 3 % is lost in the noise of a busy machine; several together are not.
        """
        chosen_knobs = {each.knob for each in self.found.best.choices}
        latest = {each.choice.label: each for each in self.found.tried}
        promising: dict[str, tuple[float, Choice]] = {}
        for tried in latest.values():
            measured, choice = tried.measured, tried.choice
            if tried.outcome != "undecided" or measured is None or choice.knob in chosen_knobs:
                continue
            if measured.ratio > promising.get(choice.knob, (1.0, choice))[0]:
                promising[choice.knob] = measured.ratio, choice
        if len(promising) < 2:
            return None
        combination = Combination(tuple(choice for _, choice in promising.values()))
        rounds = any(choice.claim == "rounding" for choice in combination.choices)
        return Choice(
            knob=" and ".join(promising),
            label=" ".join(combination.labels),
            claim="rounding" if rounds else "identical",
            settings=combination.settings,
            environment=combination.environment,
        )

    def _is_worth_repeating(self, choice: Choice) -> bool:
        """Whether a choice that lost earlier may win combined with those made since."""
        result = self.found
        if choice in (*result.best.choices, *result.left_out):
            return False
        if self._journal.found(result.best.labels, result.best.with_choice(choice).labels):
            return False
        latest = next(each for each in reversed(result.tried) if each.choice == choice)
        return latest.measured is not None and latest.measured.high > _HOPELESS

    def _try(self, choice: Choice) -> None:
        result = self.found
        candidate = result.best.with_choice(choice)
        comparison = recorded = self._journal.found(result.best.labels, candidate.labels)
        if comparison is None:
            needed_s = self._needed_s(choice)
            if self._clock.left() >= needed_s:
                comparison = self._raced(choice, candidate)
            if comparison is None:
                if choice not in result.left_out:
                    result.left_out.append(choice)
                if all(each.reused for each in result.tried):
                    least_s = self._clock.elapsed() + needed_s
                    result.least_s = min(result.least_s or least_s, least_s)
                return
            result.least_s = 0.0
            self._journal.add(comparison)
        self._take(choice, candidate, comparison, reused=recorded is not None)

    def _needed_s(self, choice: Choice) -> float:
        """Minimum duration of a race and the confirmation after it."""
        bench = self._bench
        pair_s = 2 * max(BLOCK_S, bench.step_s)
        start_s = bench.start_s or 8.0
        race_s = start_s + MIN_PAIRS * pair_s + (_COMPILE_S if choice.knob == COMPILE else 0.0)
        return race_s + self._confirmation_s()

    def _confirmation_s(self) -> float:
        pair_s = 2 * max(BLOCK_S, self._bench.step_s)
        return (SITTINGS + 1) * (1.5 * (self._bench.start_s or 8.0) + PAIRS_A_SITTING * pair_s)

    def _raced(self, choice: Choice, candidate: Combination) -> Comparison | None:
        """Race a candidate; None if the time ended before the race was decided."""
        bench, best = self._bench, self.found.best
        pairs: list[Pair] = []
        description: Mapping[str, Any] = {"hashes": {}, "memory_bytes": 0}

        def ended(outcome: Outcome, reason: str = "") -> Comparison:
            return Comparison(
                against=best.labels,
                candidate=candidate.labels,
                outcome=outcome,
                pairs=tuple(pairs),
                reason=reason,
                hashes=description["hashes"],
                memory_bytes=description["memory_bytes"],
            )

        try:
            _, description = bench.ready((_BEST, best), (_CANDIDATE, candidate))
            if self._breaks_promise(choice, description["hashes"]):
                return ended("changes the weights")
            bench.block(_CANDIDATE, candidate)
            while (verdict := _verdict(pairs)) is None:
                if self._clock.left() < self._confirmation_s() and len(pairs) >= MIN_PAIRS:
                    return None
                turned = bool(len(pairs) % 2)
                pair, _ = bench.pair((_BEST, best), (_CANDIDATE, candidate), turned=turned)
                pairs.append(pair)
        except NotMeasured as error:
            return ended("failed", str(error))
        return ended(verdict)

    def _breaks_promise(self, choice: Choice, hashes: Mapping[str, str]) -> bool:
        """Whether a choice that must not change the weights did, or cannot be shown not to."""
        return (
            choice.claim == "identical" and hashes != self._hashes and not self._plan.allow_rounding
        )

    def _take(
        self, choice: Choice, candidate: Combination, comparison: Comparison, *, reused: bool
    ) -> None:
        """Record how a race ended, and continue from the winner."""
        result = self.found
        measured = speedup(comparison.pairs) if len(comparison.pairs) >= MIN_PAIRS else None
        weights = None
        if comparison.hashes:
            weights = "identical" if comparison.hashes == self._hashes else "rounding"
        tried = Tried(
            choice=choice,
            outcome=comparison.outcome,
            measured=measured,
            weights=weights,
            reason=comparison.reason,
            memory_bytes=comparison.memory_bytes,
            reused=reused,
        )
        result.tried.append(tried)
        self._plan.say(tried_line(tried))
        if comparison.outcome == "faster":
            result.best = candidate
            self._hashes = comparison.hashes
            result.weights = "identical" if comparison.hashes == self._start_hashes else "rounding"
            self._bench.rename(_CANDIDATE, _BEST)
        else:
            self._bench.end(_CANDIDATE)

    def _confirm(self) -> None:
        """Compare the best with the baseline, in pairs of fresh processes."""
        result, bench = self.found, self._bench
        if result.best == START:
            return
        pairs: list[Pair] = []
        start_settings, best_settings = ("start", START), ("final", result.best)
        try:
            for sitting in range(MAX_SITTINGS):
                if sitting >= SITTINGS and not _is_open(speedup(pairs)):
                    break
                bench.ready()
                bench.ready(start_settings, best_settings)
                for number in range(PAIRS_A_SITTING):
                    pair, _ = bench.pair(start_settings, best_settings, turned=bool(number % 2))
                    pairs.append(pair)
        except NotMeasured as error:
            self._plan.say(f"the confirmation failed: {error}")
            return
        result.confirmed = speedup(pairs)


def _verdict(pairs: Sequence[Pair]) -> Verdict | None:
    return judge(pairs, most=MAX_PAIRS, most_if_promising=MAX_PAIRS_IF_PROMISING)


def _is_open(measured: Speedup) -> bool:
    """Whether a confirmation suggests a gain that is not yet significant."""
    return measured.ratio >= PROMISING and not is_faster(measured)


def _facts(description: Mapping[str, Any], blocks: Sequence[Block]) -> Facts:
    """The average over the baseline's blocks."""

    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    return Facts(
        device=description["device"],
        device_name=description["device_name"],
        on_host=description["on_host"],
        cores=description["cores"],
        threads=description["threads"],
        workers=description["workers"],
        step_s=mean([each.step_s for each in blocks]),
        data_share=mean([each.data_share for each in blocks]),
        loader_share=mean([each.loader_share for each in blocks]),
        queued_share=mean([each.queued_share for each in blocks]),
        memory_bytes=max(description["memory_bytes"], *(each.memory_bytes for each in blocks)),
        memory_free_bytes=description["memory_free_bytes"],
    )
