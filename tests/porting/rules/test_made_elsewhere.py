"""Configurations and strategies that one function makes and another place uses."""

from pathlib import Path

from jumar.porting.edits import FileReport
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText
from jumar.porting.tree.porting import port_tree
from tests.porting.trees import write_files

TF = "import tensorflow as tf\n\n"
MAKER = "def options():\n    config = tf.ConfigProto()\n    return config\n"
STRATEGY = (
    "def pick(gpus):\n    chosen = tf.contrib.distribute.MirroredStrategy(num_gpus=gpus)\n"
    "    return chosen\n"
)


def port(text: str) -> FileReport:
    return port_file(SourceText(TF + text), "s.py", Project(Path("nowhere")), PortOptions())


def lines(report: FileReport, rule: str) -> tuple[list[int], list[int]]:
    """The lines of a rule's findings, and of what it leaves."""
    return (
        [item.place.line for item in report.findings if item.rule == rule],
        [item.place.line for item in report.kept if item.rule == rule],
    )


def test_configuration_for_other_modules_is_reported_where_it_is_created() -> None:
    assert lines(port(MAKER), "session-config-makers") == ([4], [])


def test_configuration_used_by_its_module_is_kept_and_its_session_gets_the_options() -> None:
    report = port(f"{MAKER}sess = tf.Session(config=options())\n")
    assert lines(report, "session-config-makers") == ([], [4])
    assert "tf.Session(config=npu_config_proto(config_proto=options()))" in report.after


def test_methods_that_create_a_configuration_are_recognised() -> None:
    method = f"class Net:\n    def {MAKER[4:]}".replace("\n    config", "\n        config")
    method = method.replace("options():", "options(self):").replace(
        "\n    return", "\n        return"
    )
    assert lines(port(method), "session-config-makers") == ([5], [])
    used = f"{method}\nsess = tf.Session(config=Net().options())\n"
    assert lines(port(used), "session-config-makers") == ([], [5])


def test_comments_naming_the_factory_do_not_count_as_uses() -> None:
    text = f"# options() is for train.py\n{MAKER}__all__ = ['options']\n"
    assert lines(port(text), "session-config-makers") == ([5], [])


def test_wrapper_of_a_configuration_factory_is_not_a_factory() -> None:
    inner = MAKER.replace("\n", "\n    ").rstrip()
    text = f"def main():\n    {inner}\n    return run(options())\n"
    assert lines(port(text), "session-config-makers") == ([], [5])


def test_other_functions_are_not_configuration_factories() -> None:
    for text in (
        MAKER.replace("return config", "return tf.Session(config=config)"),
        MAKER.replace("return config", "return None"),
        MAKER.replace("return config", "return npu_config_proto(config_proto=config)").replace(
            "def", "from npu_bridge.npu_init import npu_config_proto\ndef"
        ),
        "class ConfigProto:\n    pass\ndef options():\n    return ConfigProto()\n",
        "def options():\n    return tf.ConfigProto\n",
    ):
        assert lines(port(text), "session-config-makers") == ([], [])


def test_calls_of_a_function_that_returns_a_strategy_are_reported(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "parts/makers.py": TF + STRATEGY,
            "train.py": f"{TF}from parts import makers\ns = makers.pick(8)\nmakers.other()\n",
            "names.py": "class Strategy:\n    pass\ndef pick(n):\n    return Strategy()\n",
            "test.py": f"{TF}from names import pick\nstrategy = pick(8)\n",
        },
    )
    reports = {file.path: file for file in port_tree(tmp_path, PortOptions()).files}
    rule = "distribution-strategy-users"
    assert lines(reports["train.py"], rule) == ([4], [])
    assert lines(reports["test.py"], rule) == ([], [])
    assert lines(reports["parts/makers.py"], rule) == ([], [])


def test_strategy_inserted_by_a_port_is_still_recognised() -> None:
    text = STRATEGY + "s = pick(8)\n"
    first = port(text)
    again = port_file(SourceText(first.after), "s.py", Project(Path("nowhere")), PortOptions())
    rule = "distribution-strategy-users"
    assert len(lines(first, rule)[0]) == len(lines(again, rule)[0]) == 1
