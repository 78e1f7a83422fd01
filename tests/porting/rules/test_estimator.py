"""Estimators and their configurations change together, also where they are in several files."""

from pathlib import Path

import pytest

from jumar.porting.edits import FileReport
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

TF = "import tensorflow as tf\n\n"
MAKES = f"{TF}\ndef make_config(folder):\n    return tf.estimator.RunConfig(folder)\n"
USES = (
    f"{TF}from configs import make_config\n\n"
    "estimator = tf.estimator.Estimator(model_fn, config=make_config('logs'))\n"
)


def port(files: dict[str, str], name: str, folder: Path, options: PortOptions) -> FileReport:
    for path, text in files.items():
        (folder / path).write_text(text, encoding="utf-8")
    return port_file(SourceText(files[name]), name, Project(folder), options)


def ported(text: str, options: PortOptions | None = None) -> str:
    project = Project(Path("nowhere"))
    report = port_file(SourceText(text), "script.py", project, options or PortOptions())
    return report.after or text


def test_configuration_of_another_file_keeps_the_estimator(tmp_path: Path) -> None:
    files = {"configs.py": MAKES, "train.py": USES}
    report = port(files, "train.py", tmp_path, PortOptions())
    assert "tf.estimator.Estimator(" in report.after
    assert "config=npu_run_config_init(run_config=make_config('logs'))" in report.after
    assert not port(files, "configs.py", tmp_path, PortOptions()).edits


def test_options_are_added_to_a_configuration_used_by_another_file(tmp_path: Path) -> None:
    files = {"configs.py": MAKES, "train.py": USES}
    report = port(files, "configs.py", tmp_path, PortOptions(precision="allow_mix_precision"))
    assert "tf.estimator.RunConfig(folder, session_config=npu_session_config())" in report.after


@pytest.mark.parametrize(
    "other",
    [
        "tf.estimator.DNNClassifier([8], columns, config=rc)",
        "tf.estimator.Estimator(model_fn, **words, config=rc)",
        "tf.contrib.tpu.TPUEstimator(model_fn, config=rc)",
    ],
)
def test_configuration_that_is_also_used_elsewhere_is_kept(other: str) -> None:
    text = f"{TF}rc = tf.estimator.RunConfig()\nx = tf.estimator.Estimator(f, config=rc)\n"
    after = ported(f"{text}y = {other}\n")
    assert "NPURunConfig" not in after
    assert "rc = tf.estimator.RunConfig()\n" in after
    assert after.count("npu_run_config_init(run_config=rc)") == 2


def test_possibly_none_configuration_is_wrapped_by_the_function_accepting_none() -> None:
    after = ported(
        f"{TF}rc = None\nif FLAGS.local:\n    rc = tf.estimator.RunConfig()\n"
        "x = tf.estimator.Estimator(f, config=rc)\n"
    )
    assert "x = tf.estimator.Estimator(f, config=npu_run_config_init(run_config=rc))" in after


def test_configuration_in_an_attribute_is_followed() -> None:
    after = ported(
        f"{TF}\nclass Trainer(object):\n"
        "    def __init__(self):\n"
        "        self.rc = tf.estimator.RunConfig(save_summary_steps=0, save_checkpoints_steps=1)\n"
        "        self.model = tf.estimator.Estimator(f, config=self.rc)\n"
    )
    assert "self.rc = NPURunConfig(save_summary_steps=0, save_checkpoints_steps=1)" in after
    assert "self.model = NPUEstimator(f, config=self.rc)" in after


def test_job_is_named_once_per_function_unless_the_script_does() -> None:
    two = f"{TF}a = tf.estimator.Estimator(f)\nb = tf.estimator.Estimator(g)\n"
    assert ported(two).count("JOB_ID") == 1
    own = f"import os\n{two}".replace("\n\na", "\n\nos.environ['JOB_ID'] = '7'\na")
    assert ported(own).count("JOB_ID") == 1


def test_job_is_named_before_a_condition_with_an_estimator_in_each_branch() -> None:
    after = ported(
        f"{TF}def make():\n    if a:\n        x = tf.estimator.Estimator(f)\n"
        "    else:\n        x = tf.estimator.Estimator(g)\n    return x\n"
    )
    assert 'def make():\n    os.environ.setdefault("JOB_ID", "10086")\n    if a:\n' in after


def test_class_that_forwards_all_arguments_is_reported() -> None:
    text = (
        f"{TF}class Mine(tf.estimator.Estimator):\n    def __init__(self, **words):\n"
        "        super().__init__(**words)\n"
    )
    report = port_file(SourceText(text), "script.py", Project(Path("nowhere")), PortOptions())
    assert [found.rule for found in report.findings] == ["estimator-subclass"]


def test_conflicting_names_of_the_script_are_kept() -> None:
    after = ported(f"{TF}NPUEstimator = 3\nprint(NPUEstimator)\nx = tf.estimator.Estimator(f)\n")
    assert "NPUEstimator as NPUEstimator_of_npu" in after
    assert "x = NPUEstimator_of_npu(f, " in after


def test_device_loop_is_not_promised_if_the_estimator_is_kept() -> None:
    text = f"{TF}x = tf.estimator.DNNClassifier([8], columns)\n"
    options = PortOptions(iterations_per_loop=10)
    report = port_file(SourceText(text), "script.py", Project(Path("nowhere")), options)
    assert [found.severity for found in report.findings] == ["blocking"]


def test_npu_run_config_keeps_its_options_when_its_session_configuration_is_replaced() -> None:
    text = (
        f"{TF}config = tf.estimator.RunConfig().replace(session_config=tf.ConfigProto())\n"
        "model = tf.estimator.Estimator(model_fn, config=config)\n"
    )
    after = ported(text, PortOptions(precision="allow_mix_precision"))
    assert "precision_mode='allow_mix_precision'" in after or '"allow_mix_precision"' in after
    assert ".replace(session_config=tf.ConfigProto())" in after
