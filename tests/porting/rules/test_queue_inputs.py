"""Threads that fill queues of the graph are distinguished from other threads."""

from pathlib import Path

import pytest

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

HEAD = """import threading
import tensorflow as tf

def fill(sess, op):
    sess.run(enqueue_op)

def other(sess, op):
    sess.run(op)

class Net:
    def fill_it(self, sess):
        sess.run(self.queue.enqueue(1))

"""


def lines(text: str) -> list[int]:
    report = port_file(SourceText(text), "s.py", Project(Path("nowhere")), PortOptions())
    return [item.place.line for item in report.findings if item.rule == "queue-inputs"]


@pytest.mark.parametrize(
    ("target", "reported"),
    [
        ("target=fill", True),
        ("None, fill", True),
        ("target=net.fill_it", True),
        ("target=lambda: sess.run(net.enqueue)", True),
        ("target=other", False),
        ("target=net.other", False),
        ("target=unknown", False),
        ("target=lambda: sess.run(op)", False),
        ("name='fill'", False),
    ],
)
def test_thread_is_reported_if_it_fills_a_queue(target: str, reported: bool) -> None:
    assert lines(f"{HEAD}t = threading.Thread({target})\n") == [14] * reported


def test_threads_in_a_script_without_tensorflow_are_ignored() -> None:
    text = HEAD.replace("import tensorflow as tf", "")
    assert not lines(f"{text}t = threading.Thread(target=fill)\n")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("tf.train.start_queue_runners(coord=coord)", [3, 4]),
        ("sess.run(net.enqueue)", [3]),
        ("sess.run(net.step)", []),
    ],
)
def test_coordinator_is_reported_if_there_are_queues(text: str, reported: list[int]) -> None:
    head = "import tensorflow as tf\n\ncoord = tf.train.Coordinator()\n"
    assert lines(head + text + "\n") == reported
