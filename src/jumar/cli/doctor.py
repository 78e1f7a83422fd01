"""`jumar doctor`."""

import json
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter


def doctor(*, json_: Annotated[bool, Parameter(name="--json", negative=())] = False) -> int:
    """Say what this machine has for training, what is missing and how to get it.

    Exit code 1 where something would stop a run.

    Parameters
    ----------
    json_
        Print JSON.
    """
    from jumar.environment import check, environment_lines, inspect_environment

    environment = inspect_environment()
    findings = check(environment)
    if json_:
        print(
            json.dumps(
                {**asdict(environment), "findings": [asdict(finding) for finding in findings]},
                indent=2,
            )
        )
    else:
        for line in environment_lines(environment):
            print(line)
        for finding in findings:
            print(f"{finding.level}: {finding.what}\n  {finding.todo}")
    return int(any(finding.level == "error" for finding in findings))
