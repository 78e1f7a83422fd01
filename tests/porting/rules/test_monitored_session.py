"""Sessions that a `MonitoredSession` opens itself."""

from pathlib import Path

import pytest

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

TF = "import tensorflow as tf\n\n"
CREATOR = "tf.train.ChiefSessionCreator(config=npu_config_proto())"


def ported(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The last line of the port, and rule and severity of what is reported of sessions."""
    report = port_file(
        SourceText(TF + text + "\n"), "script.py", Project(Path("nowhere")), PortOptions()
    )
    notices = [(one.rule, one.severity) for one in report.findings if one.rule == "session-config"]
    return (report.after or TF + text + "\n").splitlines()[-1], notices


@pytest.mark.parametrize(
    ("arguments", "after"),
    [
        ("", f"session_creator={CREATOR}"),
        ("hooks=hooks", f"hooks=hooks, session_creator={CREATOR}"),
        ("None, hooks", f"{CREATOR}, hooks"),
        ("session_creator=None", f"session_creator={CREATOR}"),
    ],
)
def test_monitored_session_gets_a_creator_with_npu_options(arguments: str, after: str) -> None:
    line, notices = ported(f"s = tf.train.MonitoredSession({arguments})")
    assert (line, notices) == (f"s = tf.train.MonitoredSession({after})", [])


def test_existing_session_creator_gets_the_options_where_it_is_created() -> None:
    line, notices = ported("s = tf.train.MonitoredSession(tf.train.ChiefSessionCreator())")
    assert line == f"s = tf.train.MonitoredSession({CREATOR})"
    assert notices == []
    line, notices = ported("s = tf.train.MonitoredSession(session_creator=creator)")
    assert (line, notices) == ("s = tf.train.MonitoredSession(session_creator=creator)", [])


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("s = tf.train.MonitoredSession(**options)", "look"),
        (
            "from tensorflow.python.training.monitored_session import MonitoredSession\n"
            "s = MonitoredSession()",
            "blocking",
        ),
    ],
)
def test_sessions_that_cannot_be_rewritten_are_reported(text: str, severity: str) -> None:
    line, notices = ported(text)
    assert line == text.splitlines()[-1]
    assert notices == [("session-config", severity)]


def test_no_creator_is_assumed_for_a_custom_class(tmp_path: Path) -> None:
    own = TF + "class Session(tf.train.MonitoredSession):\n    pass\n"
    (tmp_path / "own.py").write_text(own, encoding="utf-8")
    text = TF + "import own\n\ns = own.Session()\n"
    report = port_file(SourceText(text), "script.py", Project(tmp_path), PortOptions())
    assert not report.edits
    assert [(one.rule, one.severity) for one in report.findings] == [("session-config", "blocking")]
