"""Find the fastest combination of knobs, racing one at a time against the best so far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
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
CONFIRMATION_ROUNDS: Final = 4
"""Number of restarts of both settings for the confirmation, since two processes with equal settings
may differ permanently due to the memory pages they were assigned."""
MAX_CONFIRMATION_ROUNDS: Final = 8
"""Maximum number of restarts if the gain is large and its interval still contains 1."""
PAIRS_PER_ROUND: Final = 4
_COMPILE_S: Final = 120.0
_MIN_PROSPECT: Final = 0.9
"""Upper bound of the speed-up below which a choice is not tried again with others."""
_BEST, _CANDIDATE, _TWIN = "best", "candidate", "twin"


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """The parts and settings of a search.

    Attributes:
        bench: Measures settings.
        journal: The earlier measurements.
        clock: The remaining time.
        choices: Returns the choices worth trying, from the measurement of the initial settings and
            their bottlenecks.
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
    """A search for the fastest settings.

    Args:
        plan: Its parts and settings.

    Attributes:
        found: The result, which is valid even after an interruption.
    """

    def __init__(self, plan: SearchPlan) -> None:
        self._plan = plan
        self._bench, self._journal, self._clock = plan.bench, plan.journal, plan.clock
        self._hashes: Mapping[str, str] = {}
        self._start_hashes: Mapping[str, str] = {}
        self.found = Found()

    def run(self) -> Found:
        """Measure the initial settings, race the choices, and confirm the best combination.

        Raises:
            UserError: The initial settings cannot be trained.
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
        # Free memory was measured while one process of the initial settings was running.
        self._bench.one_at_a_time |= facts.memory_bytes > 0.9 * facts.memory_free_bytes
        result.facts, result.limits = facts, limits(facts)
        result.noise = speedup(comparison.pairs)
        result.reproducible = comparison.outcome != "changes the weights"
        self._hashes = self._start_hashes = comparison.hashes
        self._say_start()

    def _start_measured(self) -> tuple[Facts, Comparison]:
        """Measure two processes with the initial settings, and their difference."""
        bench = self._bench
        try:
            first, second = bench.ready((_BEST, START), (_TWIN, START))
            bench.step_s = bench.block(_BEST, START).step_s
            bench.block(_TWIN, START)
            bench.steps = max(1, round(BLOCK_S / bench.step_s))
            pairs: list[Pair] = []
            blocks: list[Block] = []
            for number in range(NOISE_PAIRS):
                reverse = bool(number % 2)
                pair, pair_blocks = bench.pair((_BEST, START), (_TWIN, START), reverse=reverse)
                pairs.append(pair)
                blocks += pair_blocks
        except NotMeasured as error:
            if not bench.one_at_a_time:
                # There may be memory for only one of them.
                bench.one_at_a_time = True
                return self._start_measured()
            raise UserError(
                f"the initial settings cannot be measured: {error}",
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
                "two processes with the initial settings have different weights after the same "
                "steps, so the effect of other settings on the weights is unknown; "
                "training.deterministic=true may help"
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
        joint_choice = self._joint_choice()
        if joint_choice is not None:
            self._try(joint_choice)

    def _joint_choice(self) -> Choice | None:
        """Return the promising undecided choices combined; None if there are fewer than two.

        On a busy machine a single gain of 3 % is lost in the noise, but not several together.
        """
        chosen_knobs = {choice.knob for choice in self.found.best.choices}
        latest = {tried.choice.label: tried for tried in self.found.tried}
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
        """Return whether a choice that lost earlier may win in combination with later choices."""
        result = self.found
        if choice in (*result.best.choices, *result.left_out):
            return False
        if self._journal.found(result.best.labels, result.best.with_choice(choice).labels):
            return False
        latest = next(tried for tried in reversed(result.tried) if tried.choice == choice)
        return latest.measured is not None and latest.measured.high > _MIN_PROSPECT

    def _try(self, choice: Choice) -> None:
        result = self.found
        candidate = result.best.with_choice(choice)
        comparison = recorded = self._journal.found(result.best.labels, candidate.labels)
        if comparison is None:
            needed_s = self._needed_s(choice)
            if self._clock.remaining() >= needed_s:
                comparison = self._raced(choice, candidate)
            if comparison is None:
                if choice not in result.left_out:
                    result.left_out.append(choice)
                if all(tried.reused for tried in result.tried):
                    min_time_s = self._clock.elapsed() + needed_s
                    result.min_time_s = min(result.min_time_s or min_time_s, min_time_s)
                return
            result.min_time_s = 0.0
            self._journal.add(comparison)
        self._record(choice, candidate, comparison, reused=recorded is not None)

    def _needed_s(self, choice: Choice) -> float:
        """Return the minimum duration of a race and the confirmation after it, in seconds."""
        bench = self._bench
        pair_s = 2 * max(BLOCK_S, bench.step_s)
        start_s = bench.start_s or 8.0
        race_s = start_s + MIN_PAIRS * pair_s + (_COMPILE_S if choice.knob == COMPILE else 0.0)
        return race_s + self._confirmation_s()

    def _confirmation_s(self) -> float:
        pair_s = 2 * max(BLOCK_S, self._bench.step_s)
        return (CONFIRMATION_ROUNDS + 1) * (
            1.5 * (self._bench.start_s or 8.0) + PAIRS_PER_ROUND * pair_s
        )

    def _raced(self, choice: Choice, candidate: Combination) -> Comparison | None:
        """Race a candidate; returns None if time runs out before the race is decided."""
        bench, best = self._bench, self.found.best
        pairs: list[Pair] = []
        description: Mapping[str, Any] = {"hashes": {}, "memory_bytes": 0}

        def result(outcome: Outcome, reason: str = "") -> Comparison:
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
            if self._changes_weights(choice, description["hashes"]):
                return result("changes the weights")
            bench.block(_CANDIDATE, candidate)
            while (verdict := _verdict(pairs)) is None:
                if self._clock.remaining() < self._confirmation_s() and len(pairs) >= MIN_PAIRS:
                    return None
                reverse = bool(len(pairs) % 2)
                pair, _ = bench.pair((_BEST, best), (_CANDIDATE, candidate), reverse=reverse)
                pairs.append(pair)
        except NotMeasured as error:
            return result("failed", str(error))
        return result(verdict)

    def _changes_weights(self, choice: Choice, hashes: Mapping[str, str]) -> bool:
        """Return whether a choice changes the weights, or may do so, although it must not."""
        return (
            choice.claim == "identical" and hashes != self._hashes and not self._plan.allow_rounding
        )

    def _record(
        self, choice: Choice, candidate: Combination, comparison: Comparison, *, reused: bool
    ) -> None:
        """Record the outcome of a race, and continue with the winner."""
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
        """Compare the best combination with the initial settings, in pairs of new processes."""
        result, bench = self.found, self._bench
        if result.best == START:
            return
        pairs: list[Pair] = []
        start_settings, best_settings = ("start", START), ("final", result.best)
        try:
            for confirmation_round in range(MAX_CONFIRMATION_ROUNDS):
                if confirmation_round >= CONFIRMATION_ROUNDS and not _is_open(speedup(pairs)):
                    break
                bench.ready()
                bench.ready(start_settings, best_settings)
                for number in range(PAIRS_PER_ROUND):
                    pair, _ = bench.pair(start_settings, best_settings, reverse=bool(number % 2))
                    pairs.append(pair)
        except NotMeasured as error:
            self._plan.say(f"the confirmation failed: {error}")
            return
        result.confirmed = speedup(pairs)


def _verdict(pairs: Sequence[Pair]) -> Verdict | None:
    return judge(pairs, max_pairs=MAX_PAIRS, max_if_promising=MAX_PAIRS_IF_PROMISING)


def _is_open(measured: Speedup) -> bool:
    """Return whether a confirmation suggests a gain that is not yet significant."""
    return measured.ratio >= PROMISING and not is_faster(measured)


def _facts(description: Mapping[str, Any], blocks: Sequence[Block]) -> Facts:
    """Average the blocks of the initial settings."""
    return Facts(
        device=description["device"],
        device_name=description["device_name"],
        on_host=description["on_host"],
        cores=description["cores"],
        threads=description["threads"],
        workers=description["workers"],
        step_s=fmean(block.step_s for block in blocks),
        data_share=fmean(block.data_share for block in blocks),
        loader_share=fmean(block.loader_share for block in blocks),
        queued_share=fmean(block.queued_share for block in blocks),
        memory_bytes=max(description["memory_bytes"], *(block.memory_bytes for block in blocks)),
        memory_free_bytes=description["memory_free_bytes"],
    )
