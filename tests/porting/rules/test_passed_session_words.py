"""Sessions whose configuration may lie in the `**kwargs` that a function passes on."""

from pathlib import Path

import pytest

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

HEAD = "import tensorflow as tf\nimport tensorflow.contrib.slim as slim\n\n"


def ported(text: str, options: PortOptions | None = None) -> tuple[str, str, list[tuple[str, str]]]:
    """The port, its last line, and rule and severity of what is reported of sessions."""
    report = port_file(
        SourceText(HEAD + text + "\n"),
        "script.py",
        Project(Path("nowhere")),
        options or PortOptions(),
    )
    after = report.after or HEAD + text + "\n"
    notices = [(one.rule, one.severity) for one in report.findings if one.rule == "session-config"]
    return after, after.splitlines()[-1].strip(), notices


@pytest.mark.parametrize(
    ("call", "after"),
    [
        (
            "slim.learning.train(op, log_dir, step, saver=saver, **kwargs)",
            "slim.learning.train(op, log_dir, step, saver=saver, **dict(kwargs, "
            'session_config=npu_config_proto(config_proto=kwargs.get("session_config"))))',
        ),
        (
            "tf.Session(**kwargs)",
            "tf.Session(**dict(kwargs, "
            'config=npu_config_proto(config_proto=kwargs.get("config"))))',
        ),
    ],
)
def test_forwarded_keywords_get_a_configuration(call: str, after: str) -> None:
    text, line, notices = ported(f"def run(op, log_dir, step, saver, **kwargs):\n    {call}")
    assert (line, notices) == (after, [])
    again, _, notices = ported(text.removeprefix(HEAD).rstrip("\n"))
    assert (again.count("dict(kwargs"), notices) == (1, [])


def test_configuration_among_forwarded_keywords_is_kept() -> None:
    text, line, _ = ported(
        "def run(**kwargs):\n    tf.Session(**kwargs)", PortOptions(precision="allow_mix_precision")
    )
    assert 'config=npu_session_config(kwargs.get("config"))' in line
    assert "def npu_session_config(config=None):" in text


@pytest.mark.parametrize(
    "call",
    [
        "tf.Session(*arguments, **kwargs)",
        "tf.Session(*arguments)",
        "tf.Session(**kwargs, **more)",
        "tf.Session(**options())",
        "tf.Session(**dict(kwargs, config=config))",
    ],
)
def test_other_forwarded_keywords_are_reported(call: str) -> None:
    _, line, notices = ported(call)
    assert (line, notices) == (call, [("session-config", "look")])
