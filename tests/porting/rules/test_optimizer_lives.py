"""Loss scale and distribution where one name holds several optimizers, one after the other."""

from pathlib import Path

import pytest

from jumar.porting.edits import FileReport
from jumar.porting.options import PortOptions, parse_loss_scale
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

FIXED = PortOptions(loss_scale=parse_loss_scale("fixed:1024"), precision="allow_mix_precision")
BOTH = PortOptions(
    loss_scale=parse_loss_scale("fixed:1024"), precision="allow_mix_precision", devices=2
)
START = (
    "import tensorflow as tf\n"
    "rewrite = tf.train.experimental.enable_mixed_precision_graph_rewrite\n\n"
)
MOMENTUM = "tf.train.MomentumOptimizer(0.1, 0.9)"
ADAM = "tf.train.AdamOptimizer(1e-3)"


def port(text: str, options: PortOptions) -> FileReport:
    return port_file(SourceText(START + text), "script.py", Project(Path("nowhere")), options)


def flat(report: FileReport) -> str:
    """The ported script without line breaks and blanks."""
    return "".join(report.after.split())


def scaled(made: str) -> str:
    return f"NPULossScaleOptimizer({made},".replace(" ", "")


def function(*lines: str) -> str:
    return "def train(loss, other, flag):\n" + "".join(f"    {line}\n" for line in lines)


FIRST = (f"opt = {MOMENTUM}", "pairs = opt.compute_gradients(loss)", "opt.apply_gradients(pairs)")


@pytest.mark.parametrize(
    "second",
    [
        (f"opt = rewrite({ADAM})", "opt.minimize(other)"),
        (f"opt = {ADAM}", "opt = rewrite(opt)", "opt.minimize(other)"),
        (f"opt = {ADAM}", "scaling = rewrite(opt)", "scaling.minimize(other)"),
        (f"opt = {ADAM}", "opt.minimize(other)"),
    ],
)
def test_optimizer_is_scaled_whatever_its_name_holds_later(second: tuple[str, ...]) -> None:
    report = port(function(*FIRST, *second), FIXED)
    assert scaled(MOMENTUM) in flat(report)
    assert flat(report).count("NPULossScaleOptimizer(") == 2
    again = port(report.after.removeprefix(START), FIXED)
    assert not [edit for edit in again.edits if edit.rule == "loss-scale"]


def test_optimizer_in_an_attribute_is_scaled_whatever_it_holds_later() -> None:
    text = (
        "class Model:\n    def build(self, loss, other):\n"
        f"        self.opt = {MOMENTUM}\n        self.opt.minimize(loss)\n"
        f"        self.opt = rewrite({ADAM})\n        self.opt.minimize(other)\n"
    )
    assert scaled(MOMENTUM) in flat(port(text, FIXED))


@pytest.mark.parametrize(
    "branches",
    [
        (
            f"if flag:\n        opt = {MOMENTUM}",
            f"else:\n        opt = rewrite({ADAM})",
        ),
        (
            f"if flag:\n        opt = {ADAM}\n        opt = rewrite(opt)",
            f"else:\n        opt = {MOMENTUM}",
        ),
    ],
)
def test_optimizer_is_scaled_beside_a_branch_with_a_loss_scale(branches: tuple[str, ...]) -> None:
    report = port(function(*branches, "opt.minimize(loss)"), FIXED)
    assert scaled(MOMENTUM) in flat(report)
    assert flat(report).count("NPULossScaleOptimizer(") == 2
    assert not report.findings


def test_optimizer_that_is_scaled_under_a_condition_is_reported() -> None:
    lines = (f"opt = {ADAM}", "if flag:", "    opt = rewrite(opt)", "opt.minimize(loss)")
    report = port(function(*lines), FIXED)
    assert flat(report).count("NPULossScaleOptimizer(") == 1
    (finding,) = report.findings
    assert (finding.rule, finding.place.line, finding.severity) == ("loss-scale", 7, "accuracy")
    assert not port(function(lines[0], "opt = rewrite(opt)", lines[3]), FIXED).findings


@pytest.mark.parametrize(
    "made",
    [
        (f"opt = rewrite({ADAM})",),
        (f"opt = {ADAM}", "opt = rewrite(opt)"),
        (f"opt = {ADAM}", "if flag:", "    opt = rewrite(opt)"),
        (
            "scale = tf.train.experimental.FixedLossScale(8)",
            f"opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer({ADAM}, scale)",
        ),
        (f"opt = tf.contrib.mixed_precision.LossScaleOptimizer({ADAM}, manager)",),
    ],
)
def test_loss_scale_of_the_script_stays_around_the_distributed_optimizer(
    made: tuple[str, ...],
) -> None:
    report = port(function(*made, "return opt.minimize(loss)"), BOTH)
    text = flat(report)
    assert f"NPUDistributedOptimizer({ADAM})" in text
    assert "NPUDistributedOptimizer(NPULossScaleOptimizer" not in text
    assert text.count("NPUDistributedOptimizer(") == text.count("NPULossScaleOptimizer(") == 1
    outer = text[text.index("NPULossScaleOptimizer(") :]
    assert 'is_distributed=int(os.getenv("RANK_SIZE","1"))>1)' in outer
    again = port(report.after.removeprefix(START), BOTH)
    assert not [one for one in again.edits if "optimizer" in one.rule or "scale" in one.rule]
