"""The final table and sentence of an accuracy tuning."""

import math
from collections.abc import Sequence

from jumar.experiments.accuracy.deciding import Decision, Measured
from jumar.experiments.accuracy.target import Target
from jumar.ground.tables import aligned_lines
from jumar.ground.text import counted

_RELATIONS = {
    "keeps": "meets the target",
    "misses": "misses the target",
    "unclear": "unclear",
    "not available": "N/A",
}


def cells(measured: Sequence[Measured], target: Target) -> list[tuple[str, str, str, str]]:
    """Return the headers, and for each setting its name, score, verdict and step time."""
    rows = [("precision mode", target.metric, f"target {target}", "batch time")]
    for item in measured:
        time = "N/A" if item.step_ms is None else f"{item.step_ms:.4g} ms"
        rows.append((item.name, score_text(item), _RELATIONS[item.judged.verdict], time))
    return rows


def table_text(measured: Sequence[Measured], target: Target) -> str:
    """Return the table for a terminal."""
    rows = cells(measured, target)
    rules = ["-" * max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = aligned_lines([rows[0], rules, *rows[1:]])
    lines += [f"{item.name}: {item.note}" for item in measured if item.note]
    return "\n".join(lines)


def table_markdown(measured: Sequence[Measured], target: Target) -> str:
    """Return the table as Markdown, in the form of the project's first experiment table."""
    head, *rows = cells(measured, target)
    lines = [f"| {' | '.join(head)} |", "| --- | --- | --- | ---: |"]
    lines += [f"| `{name}` | {score} | {verdict} | {time} |" for name, score, verdict, time in rows]
    lines += [f"\n{item.name}: {item.note}" for item in measured if item.note]
    return "\n".join(lines) + "\n"


def score_text(measured: Measured) -> str:
    """Return the mean and its uncertainty."""
    judged = measured.judged
    if judged.mean is None:
        return "N/A"
    if math.isinf(judged.half_width):
        return f"{judged.mean:.4g}"
    return f"{judged.mean:.4g} ± {judged.half_width:.2g}"


def sentence(decision: Decision, target: Target, measured: Sequence[Measured]) -> str:
    """Return a sentence that explains the decision."""
    count_text = counted(len(measured), "precision setting")
    chosen = decision.chosen
    untimed = [item for item in measured if item.step_ms is None and item.judged.verdict == "keeps"]
    if chosen is None and untimed:
        return (
            f"{untimed[0].name} meets {target}, but none of its steps was timed: the first steps "
            "of a run are excluded, so longer runs are needed."
        )
    if chosen is None:
        best = max(measured, key=lambda item: item.judged.margin)
        if best.judged.mean is None:
            return f"None of {count_text} has a value of {target.metric}."
        return (
            f"None of {count_text} meets {target}: the best is {best.name} with {target.metric} "
            f"{score_text(best)} over {counted(best.num_seeds, 'seed')}."
        )
    certainty = (
        f"meets {target} beyond chance" if decision.is_sure else f"meets {target} only on average"
    )
    clauses = [
        f"Of {count_text}, {chosen.name} is the fastest that {certainty}: {target.metric} "
        f"{score_text(chosen)} over {counted(chosen.num_seeds, 'seed')} at "
        f"{chosen.step_ms:.4g} ms a step"
    ]
    clauses += [f"{item.name} is as fast with a worse score" for item in decision.as_fast]
    for item in decision.faster:
        reason = "misses it" if item.judged.verdict == "misses" else "does not certainly meet it"
        if item.judged.mean is None:
            reason = "has no score"
        clauses.append(f"{item.name} takes {item.step_ms:.4g} ms and {reason} ({score_text(item)})")
    if decision.slower:
        next_best = min(decision.slower, key=lambda item: item.step_ms or math.inf)
        ratio = (next_best.step_ms or 0) / (chosen.step_ms or 1)
        clauses.append(f"the next that meets it, {next_best.name}, takes {ratio:.2f} times as long")
    if not decision.is_sure:
        clauses.append("more --seeds would decide")
    return "; ".join(clauses) + "."
