"""The table and the sentence with which an accuracy tuning ends."""

import math
from collections.abc import Sequence

from jumar.experiments.accuracy.deciding import Decision, Measured
from jumar.experiments.accuracy.target import Target
from jumar.ground.text import counted

_RELATIONS = {
    "keeps": "keeps the target",
    "misses": "misses the target",
    "unclear": "unclear",
    "not available": "N/A",
}


def cells(measured: Sequence[Measured], target: Target) -> list[tuple[str, str, str, str]]:
    """Setting, score, its relation to the target and step time, with headers."""
    rows = [("precision mode", target.metric, f"target {target}", "batch time")]
    for each in measured:
        time = "N/A" if each.step_ms is None else f"{each.step_ms:.4g} ms"
        rows.append((each.name, score_text(each), _RELATIONS[each.judged.verdict], time))
    return rows


def table_text(measured: Sequence[Measured], target: Target) -> str:
    """The table for a terminal."""
    rows = cells(measured, target)
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    lines += [f"{each.name}: {each.note}" for each in measured if each.note]
    return "\n".join(line.rstrip() for line in lines)


def table_markdown(measured: Sequence[Measured], target: Target) -> str:
    """The table as Markdown, in the form of the experiment table that the project started from."""
    head, *rows = cells(measured, target)
    lines = [f"| {' | '.join(head)} |", "| --- | --- | --- | ---: |"]
    lines += [f"| `{name}` | {score} | {says} | {time} |" for name, score, says, time in rows]
    lines += [f"\n{each.name}: {each.note}" for each in measured if each.note]
    return "\n".join(lines) + "\n"


def score_text(measured: Measured) -> str:
    """The mean and its uncertainty."""
    judged = measured.judged
    if judged.mean is None:
        return "N/A"
    if math.isinf(judged.half_width):
        return f"{judged.mean:.4g}"
    return f"{judged.mean:.4g} ± {judged.half_width:.2g}"


def sentence(decision: Decision, target: Target, measured: Sequence[Measured]) -> str:
    """One sentence: what was measured and what decided."""
    count_text = counted(len(measured), "precision setting")
    chosen = decision.chosen
    untimed = [each for each in measured if each.step_ms is None and each.judged.verdict == "keeps"]
    if chosen is None and untimed:
        return (
            f"{untimed[0].name} keeps {target}, but none of its steps was timed: the first ones of "
            "a run are left out, so longer runs are needed."
        )
    if chosen is None:
        best = max(measured, key=lambda each: each.judged.margin)
        if best.judged.mean is None:
            return f"None of {count_text} gave a {target.metric}."
        return (
            f"None of {count_text} keeps {target}: the best is {best.name} with {target.metric} "
            f"{score_text(best)} over {counted(best.num_seeds, 'seed')}."
        )
    certainty = (
        f"keeps {target} beyond chance" if decision.is_sure else f"reaches {target} on average only"
    )
    clauses = [
        f"Of {count_text}, {chosen.name} is the fastest that {certainty}: {target.metric} "
        f"{score_text(chosen)} over {counted(chosen.num_seeds, 'seed')} at "
        f"{chosen.step_ms:.4g} ms a step"
    ]
    clauses += [f"{each.name} is as fast with a worse score" for each in decision.as_fast]
    for each in decision.faster:
        reason = "misses it" if each.judged.verdict == "misses" else "does not keep it for sure"
        if each.judged.mean is None:
            reason = "gave no score"
        clauses.append(f"{each.name} takes {each.step_ms:.4g} ms and {reason} ({score_text(each)})")
    if decision.slower:
        next_best = min(decision.slower, key=lambda each: each.step_ms or math.inf)
        ratio = (next_best.step_ms or 0) / (chosen.step_ms or 1)
        clauses.append(f"the next that keeps it, {next_best.name}, takes {ratio:.2f} times as long")
    if not decision.is_sure:
        clauses.append("more --seeds would tell")
    return "; ".join(clauses) + "."
