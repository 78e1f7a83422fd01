"""Checks in TensorFlow 1.15 itself; without it they skip."""

from pathlib import Path

import pytest

from jumar.porting.check.checking import CheckRequest, run_check
from jumar.porting.check.interpreter import find_interpreter
from jumar.porting.check.result import CheckResult, Stage
from jumar.porting.check.side import SideRequest, read_command, run_side
from tests.porting.check import scripts
from tests.tensorflow115 import tensorflow_python

pytestmark = pytest.mark.slow

PORTED = "import npu_bridge.npu_init\n"
"""With this import every session is one for the NPU."""
OPTIONS = """
def npu_session_config(config=None):
    config = npu_config_proto(config_proto=config)
    for optimizer in config.graph_options.rewrite_options.custom_optimizers:
        optimizer.parameter_map["precision_mode"].s = b"allow_mix_precision"
    return config
"""


def check(
    tmp_path: Path,
    port: str,
    original: str | None = None,
    *,
    arguments: tuple[str, ...] = (),
    steps: int = 3,
    timeout_s: float = 60.0,
) -> CheckResult:
    """Check one script, alone or against its original."""
    for name, text in (("port", port), ("original", original)):
        if text is not None:
            (tmp_path / name).mkdir()
            (tmp_path / name / "train.py").write_text(text)
    command = read_command(["train.py", *arguments])
    assert command is not None
    return run_check(
        CheckRequest(
            ported=tmp_path / "port",
            original=tmp_path / "original" if original is not None else None,
            command=command,
            interpreter=find_interpreter(
                python=Path(tensorflow_python()), make_env=None, environment={}
            ),
            steps=steps,
            seed=1,
            timeout_s=timeout_s,
            timeout=f"{timeout_s:g}s",
            tolerance=1e-5,
        )
    )


def first_failed(result: CheckResult) -> Stage:
    return next(stage for stage in result.stages if stage.status == "failed")


@pytest.mark.parametrize("style", sorted(scripts.WATCHED))
def test_steps_are_found_in_every_style_with_their_losses(tmp_path: Path, style: str):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "train.py").write_text(scripts.WATCHED[style])
    command = read_command(["train.py"])
    assert command is not None
    side = run_side(
        SideRequest(
            tree=tmp_path / "tree",
            command=command,
            with_standin=False,
            interpreter=find_interpreter(
                python=Path(tensorflow_python()), make_env=None, environment={}
            ),
            steps=4,
            seed=1,
            timeout_s=60.0,
        ),
        tmp_path / "run",
    )
    record = side.record
    assert record.finished == "steps", record.ended.tail
    assert [len(step.losses) for step in record.losses] == [1, 1, 1, 1]
    names = [step.losses[0][0].split("/")[0] for step in record.losses]
    assert (len(set(names)), names[:2]) == (
        (2, names[2:]) if style == "two optimizers" else (1, names[2:])
    )
    assert set(record.reached) == {"imports", "graph", "step"}
    # The script wrote checkpoints and logs, but not here.
    assert sorted(path.name for path in (tmp_path / "tree").iterdir()) == ["train.py"]
    assert not (tmp_path / "run").exists()


def test_good_port_with_loss_scale_and_device_dropout_matches_its_original(tmp_path: Path):
    result = check(tmp_path, scripts.SESSION_RUN_PORTED, scripts.SESSION_RUN, steps=5)
    assert result.passed, result.stages
    assert result.comparison is not None
    kinds = [event["kind"] for event in result.standin]
    assert "session" in kinds
    assert "dropout" in kinds


def test_good_port_of_an_estimator_matches_its_original(tmp_path: Path):
    result = check(tmp_path, scripts.ESTIMATOR_PORTED, scripts.ESTIMATOR)
    assert result.passed, result.stages


def test_no_session_fuses_operators_since_a_port_does_not(tmp_path: Path):
    told = scripts.SESSION_RUN.replace(
        "        sess.run(tf.global",
        "        rewrites = sess._config.graph_options.rewrite_options\n"
        "        assert rewrites.remapping == rewrites.OFF, rewrites\n"
        "        sess.run(tf.global",
    )
    result = check(tmp_path, scripts.SESSION_RUN_PORTED, told)
    assert result.passed, result.stages


def test_original_that_chooses_a_gpu_runs_without_one(tmp_path: Path):
    original = scripts.SESSION_RUN.replace(
        "tf.Session()",
        "tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list='0')))",
    )
    result = check(tmp_path, scripts.SESSION_RUN_PORTED, original)
    assert result.passed, result.stages


def test_port_that_leaves_remapping_on_fails(tmp_path: Path):
    config = (
        "    import npu_bridge\n"
        "    config = tf.ConfigProto()\n"
        "    config.graph_options.rewrite_options.custom_optimizers.add().name = 'NpuOptimizer'\n"
        "    with tf.Session(config=config) as sess:"
    )
    port = scripts.SESSION_RUN.replace("    with tf.Session() as sess:", config)
    result = check(tmp_path, port, scripts.SESSION_RUN)
    ignored = [event.get("key") for event in result.standin if event["kind"] == "ignored option"]
    assert "remapping" in ignored


def test_queues_with_several_threads_are_deterministic(tmp_path: Path):
    result = check(tmp_path, scripts.QUEUES, scripts.QUEUES, steps=10)
    assert result.stages[-1].status == "passed", result.stages
    assert result.comparison is not None
    assert result.comparison.num_equal == 10


def test_empty_sequence_bucket_does_not_block_the_others(tmp_path: Path):
    result = check(tmp_path, scripts.BUCKETS, scripts.BUCKETS, steps=10, timeout_s=40.0)
    assert result.stages[-1].status == "passed", result.stages
    assert result.comparison is not None
    assert result.comparison.num_equal == 10


def test_random_crops_around_boxes_are_deterministic(tmp_path: Path):
    result = check(tmp_path, scripts.RANDOM_CROPS, scripts.RANDOM_CROPS, steps=6)
    assert result.stages[-1].status == "passed", result.stages
    assert result.comparison is not None
    assert result.comparison.num_equal == 6


def test_port_with_an_inverted_dropout_rate_is_found_at_its_first_step(tmp_path: Path):
    wrong = scripts.SESSION_RUN_PORTED.replace("keep_prob=0.8", "keep_prob=1 - 0.8")
    result = check(tmp_path, wrong, scripts.SESSION_RUN)
    stage = first_failed(result)
    assert stage.name.en.startswith("follows")
    assert stage.reason.en.startswith("step 1: the original has")
    assert stage.reason.en.endswith("the original is reproducible")


def test_non_deterministic_original_proves_nothing(tmp_path: Path):
    script = scripts.SESSION_RUN.replace(
        "import numpy as np", "import os\nimport numpy as np\nnp.random.seed(os.getpid())", 1
    )
    result = check(tmp_path, PORTED + script, script)
    assert first_failed(result).reason.en.startswith("inconclusive: two runs of the original")


def test_missing_name_fails_the_graph_stage_with_its_location(tmp_path: Path):
    script = "import tensorflow as tf\n\ndef main():\n    tf.Sesion()\n\nmain()\n"
    result = check(tmp_path, script, script)
    assert [stage.status for stage in result.stages] == [
        "passed",
        "passed",
        "failed",
        "not reached",
        "not reached",
        "not reached",
    ]
    assert "has no attribute 'Sesion' (train.py:4)" in first_failed(result).reason.en


def test_missing_module_fails_the_imports_and_names_its_package(tmp_path: Path):
    result = check(tmp_path, "import tensorflow as tf\nimport skimage.nothing\n")
    stage = first_failed(result)
    assert stage.name.en == "imports"
    assert "-m pip install scikit-image" in stage.reason.en


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import sys\nsys.exit('no data')\n", "the script exited with sys.exit(no data)"),
        ("x = input('data? ')\n", "EOFError: EOF when reading a line (train.py:1)"),
        ("x = 1\n", "the script ended after 0 training steps"),
    ],
)
def test_every_way_a_script_ends_is_a_result(tmp_path: Path, script: str, reason: str):
    assert first_failed(check(tmp_path, script)).reason.en == reason


def test_hanging_script_is_a_result_with_its_location(tmp_path: Path):
    script = "import time\n\ndef wait():\n    time.sleep(100)\n\nwait()\n"
    result = check(tmp_path, script, timeout_s=20.0)
    stage = first_failed(result)
    assert stage.reason.en == "still running after 20s"
    assert any("line 4 in wait" in line for line in stage.details)


def test_unported_tree_does_not_pass(tmp_path: Path):
    result = check(tmp_path, scripts.SESSION_RUN, scripts.SESSION_RUN)
    stage = first_failed(result)
    assert stage.name.en == "carries the NPU's options"
    assert stage.reason.en.startswith("no session had NpuOptimizer")
    assert result.stages[-1].status == "passed"


def test_session_without_the_ports_options_does_not_pass(tmp_path: Path):
    lacking = scripts.SESSION_RUN_PORTED + OPTIONS
    stage = first_failed(check(tmp_path, lacking))
    assert stage.name.en == "carries the NPU's options"
    assert stage.reason.en.startswith("no session carried precision_mode")


def test_nan_losses_on_both_sides_are_not_equal(tmp_path: Path):
    script = scripts.SESSION_RUN.replace("tf.reduce_mean(", "float('nan') * tf.reduce_mean(", 1)
    assert script != scripts.SESSION_RUN
    stage = first_failed(check(tmp_path, PORTED + script, script))
    assert stage.reason.en.startswith("step 1: the loss is nan on both sides")


def test_already_broken_original_is_named_if_the_port_fails(tmp_path: Path):
    broken = "raise KeyError('was broken')\n" + scripts.SESSION_RUN
    stage = check(tmp_path, PORTED + broken, broken).stages[-1]
    assert stage.status == "not reached"
    assert stage.reason.en.startswith(
        "the original completes no step either: KeyError: 'was broken'"
    )


def test_broken_port_is_distinguished_from_a_broken_original(tmp_path: Path):
    result = check(tmp_path, "raise KeyError('new')\n", scripts.SESSION_RUN)
    assert result.stages[-1].reason.en.startswith("the original completes its first step")


def test_python_2_original_runs_as_converted_by_the_port(tmp_path: Path):
    old = scripts.SESSION_RUN + "\nprint 'done'\n"
    new = PORTED + scripts.SESSION_RUN + "\nprint('done')\n"
    result = check(tmp_path, new, old)
    assert result.passed, result.stages
    assert any("Python 2" in note.en for note in result.notes)
    assert (tmp_path / "original" / "train.py").read_text() == old
