"""Tracebacks in a stream: whose line is named, and which exceptions ended nothing."""

from pathlib import Path

import pytest

from jumar.failures.reading.tracebacks import Tracebacks, is_source_in
from tests.failures.explaining import explain_text, named

STREAM = (0, None, None)
IGNORED = """\
Exception ignored in: <function Pool.__del__ at 0x7fee7c735240>
Traceback (most recent call last):
  File "/job/pool.py", line 4, in __del__
    self.close()
RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB
"""
RAISED = """\
Traceback (most recent call last):
  File "/job/train.py", line 7, in <module>
    main()
ValueError: no such mode
"""


def frame_of(*lines: str) -> str:
    tracebacks = Tracebacks()
    for line in lines:
        tracebacks.add_line(STREAM, line)
    return tracebacks.frame(STREAM)


@pytest.mark.parametrize(
    "library",
    [
        "/usr/lib/python3/dist-packages/torch/nn/module.py",
        "/opt/conda/lib/python3.10/site-packages/torch/nn/module.py",
        "/opt/conda/lib/python3.7/os.py",
        "/usr/lib64/python3.9/os.py",
        "/usr/src/torch-2.1.0-py3.8.egg/torch/nn/module.py",
        "/usr/local/bin/accelerate-launch",
        "h5py/h5f.pyx",
        "C:\\Python310\\Lib\\multiprocessing\\spawn.py",
        "C:\\Python310\\lib\\runpy.py",
        "<frozen runpy>",
    ],
)
def test_line_of_the_script_is_named_before_a_librarys(library: str) -> None:
    own = '  File "/job/train.py", line 7, in main'
    inner = f'  File "{library}", line 9, in f'
    assert frame_of(own, inner) == "/job/train.py:7"
    assert frame_of(inner, own) == "/job/train.py:7"
    assert frame_of(inner) == f"{library}:9"


@pytest.mark.parametrize("own", ["/job/lib/core/function.py", "/job/lib/trainer.py"])
def test_own_module_in_a_folder_named_lib_is_the_script(own: str) -> None:
    lines = ('  File "/job/train.py", line 7, in main', f'  File "{own}", line 61, in train')
    assert frame_of(*lines) == f"{own}:61"


def test_frames_in_boxes_are_read() -> None:
    box = "│ /job/large/trainer.py:555 in _inner_training_loop            │"
    assert frame_of(box, "│ ❱ 555 │   │   if self.deepspeed: │") == "/job/large/trainer.py:555"


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ("Cell In [93], line 2", "Cell In [93]:2"),
        ("Cell In[5], line 12", "Cell In[5]:12"),
        ("File ~/job/launchers.py:87, in launcher(function, args)", "~/job/launchers.py:87"),
    ],
)
def test_frames_of_notebooks_are_read(line: str, frame: str) -> None:
    assert frame_of(line) == frame


def test_new_traceback_forgets_the_frames_of_the_last() -> None:
    first = '  File "/job/train.py", line 7, in main'
    assert frame_of(first, "Traceback (most recent call last):") == ""


def test_streams_do_not_mix() -> None:
    tracebacks = Tracebacks()
    tracebacks.add_line((0, 1, None), '  File "/job/train.py", line 7, in main')
    assert tracebacks.frame((0, 2, None)) == ""


def test_exception_that_python_ignored_ranks_after_a_raised_one(tmp_path: Path) -> None:
    explanation = explain_text(tmp_path, log=IGNORED + RAISED)
    assert named(explanation) == ["python-exception", "cuda-out-of-memory"]
    assert explanation.candidates[0].first.says == "ValueError: no such mode"


def test_exception_that_python_ignored_is_named_if_it_is_the_only_one(tmp_path: Path) -> None:
    explanation = explain_text(tmp_path, log=IGNORED)
    assert named(explanation) == ["cuda-out-of-memory"]
    assert explanation.candidates[0].first.survived


def test_second_traceback_is_not_taken_for_the_ignored_one(tmp_path: Path) -> None:
    cut = "\n".join(IGNORED.splitlines()[:-1]) + "\n"
    explanation = explain_text(tmp_path, log=cut + RAISED)
    assert not explanation.candidates[0].first.survived


@pytest.mark.parametrize(
    ("text", "before", "expected"),
    [
        ("    raise KeyError(key)", '  File "a.py", line 7, in f', True),
        ("KeyError: 'a'", '  File "a.py", line 7, in f', False),
        ("    KeyError: 'a'", "some text", False),
    ],
)
def test_source_is_the_indented_line_below_a_frame(text: str, before: str, expected: bool) -> None:
    assert is_source_in(text, before) == expected


def test_source_of_a_raise_is_not_quoted_as_the_exception(tmp_path: Path) -> None:
    log = """\
  File "/job/train.py", line 663, in train_one_epoch
    model.save_checkpoint(
  File "/opt/lib/python3.10/site-packages/torch/nn/modules/module.py", line 1614, in __getattr__
    raise AttributeError("'{}' object has no attribute '{}'".format(
AttributeError: 'Whisper' object has no attribute 'save_checkpoint'
"""
    first = explain_text(tmp_path, log=log).candidates[0].first
    assert first.says == "AttributeError: 'Whisper' object has no attribute 'save_checkpoint'"
    assert first.frame == "/job/train.py:663"


def test_key_error_of_a_loader_worker_is_quoted_from_its_own_traceback(tmp_path: Path) -> None:
    log = """\
KeyError: Caught KeyError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/job/datasets.py", line 67, in __getitem__
    img = Image.open(self.images[i], mode='r')
KeyError: 0
"""
    first = explain_text(tmp_path, log=log).candidates[0].first
    assert (first.says, first.frame) == ("KeyError: 0", "/job/datasets.py:67")


def test_source_line_after_a_prefix_is_not_another_exception() -> None:
    frame = 'node-07:   File "/job/train.py", line 7, in main'
    assert is_source_in("node-07:     raise KeyError: x", frame)
    assert not is_source_in("node-07: KeyError: x", frame)


HANDLED = """\
Traceback (most recent call last):
  File "/job/quantizer.py", line 50, in get
    import mindie_turbo
ModuleNotFoundError: No module named 'mindie_turbo'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/job/worker.py", line 461, in main
    quantizer.get()
  File "/job/quantizer.py", line 55, in get
"""
OTHER_WAY = """\
    return Other().get()
  File "/job/other.py", line 80, in get
    raise ValueError("no such mode")
ValueError: no such mode
"""
REWORDED = """\
    raise ValueError("install mindie_turbo")
ValueError: install mindie_turbo
"""


@pytest.mark.parametrize("prefix", ["", "[rank1]: "])
def test_missing_package_was_survived_if_its_handler_called_something_else(
    tmp_path: Path, prefix: str
) -> None:
    log = "".join(prefix + line for line in (HANDLED + OTHER_WAY).splitlines(keepends=True))
    assert named(explain_text(tmp_path, log=log)) == ["python-exception", "module-missing"]


def test_missing_package_that_the_handler_only_reworded_is_the_cause(tmp_path: Path) -> None:
    log = HANDLED + REWORDED
    assert named(explain_text(tmp_path, log=log))[0] == "module-missing"


def test_other_exceptions_are_the_cause_of_what_their_handler_called(tmp_path: Path) -> None:
    """Saving a checkpoint when memory ran out, which fails as well."""
    log = (HANDLED + OTHER_WAY).replace("ModuleNotFoundError: No module", "NPU out of memory: no")
    log = log.replace("NPU out", "RuntimeError: NPU out")
    assert named(explain_text(tmp_path, log=log))[0] == "npu-out-of-memory"


def test_direct_cause_is_not_survived(tmp_path: Path) -> None:
    handled = "During handling of the above exception, another exception occurred"
    direct = "The above exception was the direct cause of the following exception"
    log = (HANDLED + OTHER_WAY).replace(handled, direct)
    assert named(explain_text(tmp_path, log=log))[0] == "module-missing"
