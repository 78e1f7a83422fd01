"""Packages for CUDA are as severe as their imports are unavoidable."""

from pathlib import Path

import pytest

from jumar.porting.edits import FileReport
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

WORKS = "pynvml needs CUDA; the script seems to work without it"


def port(text: str) -> FileReport:
    options = PortOptions(source="torch")
    source = SourceText(f"import torch\n{text}")
    return port_file(source, "script.py", Project(Path("nowhere")), options)


@pytest.mark.parametrize(
    ("text", "reason", "severity"),
    [
        ("import pynvml\n", "pynvml needs CUDA", "blocking"),
        (
            "def memory():\n    import pynvml\n",
            "pynvml needs CUDA: calling this function fails on an NPU",
            "blocking",
        ),
        ("try:\n    import pynvml\nexcept ImportError:\n    pynvml = None\n", WORKS, "look"),
        ("def f():\n    try:\n        import pynvml\n    except:\n        pass\n", WORKS, "look"),
        (
            "try:\n    import pynvml\nexcept (OSError, ModuleNotFoundError):\n    pass\n",
            WORKS,
            "look",
        ),
        ("try:\n    import pynvml\nexcept OSError:\n    pass\n", "pynvml needs CUDA", "blocking"),
        (
            "try:\n    import other\nexcept ImportError:\n    import pynvml\n",
            "pynvml needs CUDA",
            "blocking",
        ),
        ("try:\n    import pynvml\nfinally:\n    pass\n", "pynvml needs CUDA", "blocking"),
        (
            "def f():\n    if cuda:\n        import pynvml\n",
            "pynvml needs CUDA; it is only imported under a condition",
            "look",
        ),
    ],
)
def test_import_of_a_package_for_cuda_is_judged_by_what_guards_it(
    text: str, reason: str, severity: str
) -> None:
    (finding,) = port(text).findings
    assert (finding.rule, finding.reason.en, finding.severity) == (
        "torch-packages",
        reason,
        severity,
    )


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("def f():\n    from apex.optimizers import FusedAdam\n", "blocking"),
        (
            "try:\n    from apex.optimizers import FusedAdam\nexcept ImportError:\n    pass\n",
            "look",
        ),
    ],
)
def test_parts_of_apex_are_judged_in_the_same_way(text: str, severity: str) -> None:
    (finding,) = port(text).findings
    assert (finding.rule, finding.severity) == ("apex", severity)
