"""`jumar explain`: the first cause of a failed job, from the logs of all of its ranks."""

import json
from typing import TYPE_CHECKING

from jumar.cli.options import JsonFlag, Token
from jumar.ground.errors import UserError
from jumar.ground.text import Language, print_plain

if TYPE_CHECKING:
    from jumar.failures import Candidate, Explanation


def explain(*logs: Token, json_: JsonFlag = False, lang: Language = "en") -> int:
    """Explain why a job failed, from the logs of all of its ranks.

    Reads plog and slog folders of CANN, output of torchrun and ModelArts, and logs of MindSpore,
    torch_npu, HCCL, the TF adapter, NCCL and CUDA. The exit code is 1 if nothing is recognised.

    Parameters
    ----------
    logs
        Log files, folders of them, zip, tar or gz files; `-` is standard input.
    lang
        Language of the explanation.
    """
    from jumar.failures import explained, fault_table, read_job
    from jumar.failures.wording import lines_of

    if not logs:
        raise UserError("a log is missing", todo="Name a file or folder, or - for standard input.")
    if unknown := next((log for log in logs if log.startswith("-") and log != "-"), ""):
        raise UserError(
            f"unknown option '{unknown}'",
            todo="jumar explain --help lists them; a file of that name is ./" + unknown,
        )
    explanation = explained(read_job(list(logs), fault_table()))
    if json_:
        print(_escaped(json.dumps(_as_json(explanation, lang), indent=2, ensure_ascii=False)))
    else:
        print_plain("\n".join(lines_of(explanation, lang)).rstrip("\n"))
    return 0 if explanation.candidates else 1


def _escaped(text: str) -> str:
    """Escape terminal control characters in JSON, such as C1 and bidirectional ones."""
    return "".join(
        character if character.isprintable() or character == "\n" else json.dumps(character)[1:-1]
        for character in text
    )


def _as_json(explanation: "Explanation", lang: Language) -> dict[str, object]:
    job = explanation.job
    return {
        "candidates": [_candidate(candidate, lang) for candidate in explanation.candidates],
        "collateral": [
            {
                "fault": damage.fault.id,
                "what": damage.fault.what.in_language(lang),
                "ranks": list(damage.ranks),
                "lines": sum(sighting.count for sighting in damage.sightings),
                "file": damage.first.file,
                "line": damage.first.line,
            }
            for damage in explanation.collateral
        ],
        "errors": [
            {"file": error.file, "line": error.line, "text": error.text}
            for error in explanation.errors
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
                "file": sighting.file,
                "line": sighting.line,
                "text": sighting.text,
                "rank": sighting.rank,
                "device": sighting.device,
                "host": sighting.host or None,
                "frame": sighting.frame or None,
                "time": when(sighting) or None,
                "lines": sighting.count,
            }
            for sighting in candidate.sightings[:20]
        ],
        "sources": list(candidate.fault.sources),
    }
