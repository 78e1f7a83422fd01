"""The fastest setting that keeps a target, from the figures of the project's first table."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jumar.experiments.accuracy.deciding import SAME_SPEED, Measured, decide
from jumar.experiments.accuracy.target import Judged, Target, Verdict
from jumar.experiments.accuracy.wording import sentence, table_markdown


def setting(
    name: str, verdict: Verdict, step_ms: float | None, margin: float = 0.0, mean: float = 0.0
) -> Measured:
    judged = Judged(verdict=verdict, mean=mean or 60 + margin, half_width=0.1, margin=margin)
    if verdict == "not available":
        judged = Judged(verdict=verdict)
    return Measured(name=name, judged=judged, step_ms=step_ms, num_seeds=3)


ALEXNET = (
    setting("must_keep_origin_dtype", "not available", None),
    setting("allow_mix_precision", "keeps", 50, margin=0.2),
    setting("allow_fp32_to_fp16", "keeps", 170, margin=0.3),
    setting("force_fp16", "misses", 50, margin=-1.0),
)
"""On an Ascend 910: = baseline ~50 ms, = baseline ~170 ms, < baseline ~50 ms, and N/A."""


def test_alexnet_on_an_ascend_910_is_decided_as_in_its_table() -> None:
    decision = decide(ALEXNET)
    assert decision.chosen is ALEXNET[1]
    assert decision.is_sure
    assert [each.name for each in decision.faster] == ["force_fp16"]
    assert [each.name for each in decision.slower] == ["allow_fp32_to_fp16"]


def test_sentence_and_table_show_measurements_and_the_deciding_one() -> None:
    target = Target(metric="top1", value=60)
    message = sentence(decide(ALEXNET), target, ALEXNET)
    assert message == (
        "Of 4 precision settings, allow_mix_precision is the fastest that meets top1=60 beyond "
        "chance: top1 60.2 ± 0.1 over 3 seeds at 50 ms a step; force_fp16 takes 50 ms and misses "
        "it (59 ± 0.1); the next that meets it, allow_fp32_to_fp16, takes 3.40 times as long."
    )
    lines = table_markdown(ALEXNET, target).splitlines()
    assert lines[2] == "| `must_keep_origin_dtype` | N/A | N/A | N/A |"
    assert lines[5] == "| `force_fp16` | 59 ± 0.1 | misses the target | 50 ms |"


def test_equally_fast_settings_are_ranked_by_score_then_order() -> None:
    a, b = setting("a", "keeps", 50, margin=0.1), setting("b", "keeps", 51, margin=0.4)
    assert decide([a, b]).chosen is b
    assert decide([a, b]).as_fast == (a,)
    same = replace(b, name="c", judged=a.judged)
    assert decide([a, same]).chosen is a


def test_settings_reaching_the_target_only_on_average_are_last_and_unconfirmed() -> None:
    unclear, slow = setting("a", "unclear", 10, margin=0.1), setting("b", "keeps", 90, margin=1)
    assert decide([unclear, slow]).chosen is slow
    alone = decide([unclear, setting("c", "unclear", 5, margin=-0.1)])
    assert alone.chosen is unclear
    assert not alone.is_sure
    message = sentence(alone, Target(metric="top1", value=60), [unclear])
    assert "more --seeds would decide" in message


def test_best_setting_is_named_if_none_keeps_the_target() -> None:
    measured = [setting("a", "misses", 10, margin=-2), setting("b", "misses", 20, margin=-1)]
    decision = decide(measured)
    assert decision.chosen is None
    message = sentence(decision, Target(metric="top1", value=60), measured)
    assert message == (
        "None of 2 precision settings meets top1=60: the best is b with top1 59 ± 0.1 over 3 seeds."
    )


def test_without_step_times_nothing_is_decided_with_a_notice() -> None:
    measured = [setting("a", "keeps", None, margin=1)]
    assert decide(measured).chosen is None
    message = sentence(decide(measured), Target(metric="top1", value=60), measured)
    assert message.startswith("a meets top1=60, but none of its steps was timed")


SETTINGS = st.lists(
    st.builds(
        setting,
        name=st.uuids().map(str),
        verdict=st.sampled_from(["keeps", "misses", "unclear", "not available"]),
        step_ms=st.none() | st.floats(1, 1000),
        margin=st.floats(-5, 5),
    ),
    max_size=8,
)


@given(SETTINGS)
def test_no_setting_that_keeps_the_target_is_faster_than_the_chosen_one(measured: list) -> None:
    decision = decide(measured)
    keeping = [e for e in measured if e.judged.verdict == "keeps" and e.step_ms is not None]
    assert decision.is_sure == bool(keeping)
    if keeping:
        assert decision.chosen in keeping
        fastest = min(each.step_ms for each in keeping)
        assert decision.chosen.step_ms <= fastest * (1 + SAME_SPEED)


@given(SETTINGS, st.floats(0.25, 4))
def test_only_time_ratios_matter_and_losers_change_nothing(measured: list, scale: float) -> None:
    chosen = decide(measured).chosen
    # A power of two keeps every comparison, also that with the limit.
    factor = 2.0 ** round(scale)
    scaled = [replace(e, step_ms=e.step_ms and e.step_ms * factor) for e in measured]
    after = decide(scaled).chosen
    assert (after and after.name) == (chosen and chosen.name)
    more = [*measured, setting("x", "misses", 0.5, margin=-3), setting("y", "not available", 0.5)]
    assert decide(more).chosen is chosen
