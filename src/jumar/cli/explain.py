"""`jumar explain`: the first cause of a failed job, from the logs of all of its ranks."""

import json
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jumar.cli.options import JsonFlag
from jumar.ground.errors import UserError
from jumar.ground.text import Language, print_plain

if TYPE_CHECKING:
    from jumar.failures import Candidate, Explanation

_Log = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""Accepts `-`, which would otherwise be taken for an unknown option."""


def explain(*logs: _Log, json_: JsonFlag = False, lang: Language = "en") -> int:
    """Say why a job failed, from the logs of all of its ranks.

    Reads plog and slog folders of CANN, what torchrun and ModelArts print, logs of MindSpore,
    torch_npu, HCCL, the TF adapter, NCCL and CUDA. The exit code is 1 if nothing is recognised.

    Parameters
    ----------
    logs
        Log files, folders of them, zip, tar or gz files; `-` is standard input.
    json_
        Print JSON.
    lang
        Language of the explanation.
    """
    from jumar.failures import explained, fault_table, read_job
    from jumar.failures.wording import lines_of

    if not logs:
        raise UserError("no log given", todo="Give a file or folder, or - for standard input.")
    if unknown := next((log for log in logs if log.startswith("-") and log != "-"), ""):
        raise UserError(
            f"unknown option '{unknown}'",
            todo="jumar explain --help lists them; a file of that name is ./" + unknown,
        )
    explanation = explained(read_job(list(logs), fault_table()))
    if json_:
        print(_spelt(json.dumps(_as_json(explanation, lang), indent=2, ensure_ascii=False)))
    else:
        print_plain("\n".join(lines_of(explanation, lang)).rstrip("\n"))
    return 0 if explanation.candidates else 1


def _spelt(text: str) -> str:
    """JSON with terminal control characters escaped, such as C1 and bidirectional ones."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1]
        for letter in text
    )


def _as_json(explanation: "Explanation", lang: Language) -> dict[str, object]:
    job = explanation.job
    return {
        "candidates": [_candidate(each, lang) for each in explanation.candidates],
        "collateral": [
            {
                "fault": each.fault.id,
                "what": each.fault.what.in_language(lang),
                "ranks": list(each.ranks),
                "lines": sum(sighting.count for sighting in each.sightings),
                "file": each.first.file,
                "line": each.first.line,
            }
            for each in explanation.collateral
        ],
        "errors": [
            {"file": each.file, "line": each.line, "text": each.text} for each in explanation.errors
        ],
        "files": job.files,
        "unread": job.unread,
        "lines": job.lines,
        "ranks": sorted(job.ranks),
        "world": job.world or None,
    }


def _candidate(candidate: "Candidate", lang: Language) -> dict[str, object]:
    from jumar.failures.wording import when

    culprit = candidate.culprit
    return {
        "fault": candidate.fault.id,
        "role": candidate.fault.role,
        "what": candidate.fault.what.in_language(lang),
        "first": candidate.fault.first.in_language(lang),
        "ranks": list(candidate.ranks),
        "culprit": None
        if culprit is None
        else {
            "ranks": list(culprit.ranks),
            "where": culprit.where or None,
            "why": culprit.why.in_language(lang),
        },
        "evidence": [
            {
                "file": each.file,
                "line": each.line,
                "text": each.text,
                "rank": each.rank,
                "device": each.device,
                "host": each.host or None,
                "frame": each.frame or None,
                "time": when(each) or None,
                "lines": each.count,
            }
            for each in candidate.sightings[:20]
        ],
        "sources": list(candidate.fault.sources),
    }
