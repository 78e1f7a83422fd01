"""A port's sessions carry the options that its scripts ask for, or the check says which not."""

from pathlib import Path

from jumar.porting.check.carried import not_carried, requested_options

ESTIMATOR = (
    "from npu_bridge.npu_init import NPURunConfig\n"
    "config = NPURunConfig(model_dir='out', precision_mode='allow_mix_precision', "
    "hcom_parallel=parallel, modify_mixlist=None)\n"
)


def script(folder: Path, text: str) -> Path:
    path = folder / "train.py"
    path.write_text(text)
    return path


def session(**options: object) -> dict[str, object]:
    return {"kind": "session", "npu": True, "options": [options]}


def test_npu_run_config_arguments_are_required_with_their_values(tmp_path: Path) -> None:
    asked = requested_options(script(tmp_path, ESTIMATOR))
    assert asked == {"precision_mode": "allow_mix_precision", "hcom_parallel": ""}


def test_estimator_that_receives_them_passes(tmp_path: Path) -> None:
    events = [session(), session(precision_mode="allow_mix_precision", hcom_parallel=True)]
    assert not not_carried(events, [script(tmp_path, ESTIMATOR)]).en


def test_missing_estimator_arguments_are_named_with_their_value(tmp_path: Path) -> None:
    path = script(tmp_path, ESTIMATOR)
    reason = not_carried([session(precision_mode="force_fp16", hcom_parallel=True)], [path]).en
    assert "precision_mode=allow_mix_precision (but force_fp16)" in reason
    assert "hcom_parallel" not in reason
    assert "hcom_parallel, precision_mode" in not_carried([session()], [path]).en


def test_lack_of_any_npu_session_is_the_reason(tmp_path: Path) -> None:
    host = {"kind": "session", "npu": False}
    assert "no session had NpuOptimizer" in not_carried([host], [script(tmp_path, ESTIMATOR)]).en
