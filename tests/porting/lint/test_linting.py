"""What is found wrong in scripts that use npu_bridge, and what is left in peace."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.cli.port_lint import lint as lint_command
from jumar.ground.errors import UserError
from jumar.porting.lint.linting import lint_source, lint_tree
from jumar.porting.npu.exports import NPU_INIT_NAMES
from jumar.porting.npu.option_table import ADAPTER_OPTIONS
from jumar.porting.npu.session_options import (
    run_config_arguments,
    run_config_functions,
    session_config_function,
)
from jumar.porting.options import PortOptions
from tests.other_user import open_folder, run_without_rights
from tests.porting.npu.test_session_options import all_options

_HEAD = """\
import tensorflow as tf
from npu_bridge.npu_init import *

config = tf.ConfigProto()
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
"""
_OFF = """\
config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
"""


def rules(text: str) -> list[str]:
    return [found.rule for found in lint_source("train.py", text)]


def rules_with(lines: str) -> list[str]:
    """The findings about lines in a block that is otherwise right."""
    return rules(_HEAD + lines + "\n" + _OFF)


# How a contest's participant ported NLRN, as posted; names of the script around it are his.
NLRN = """\
from npu_bridge.npu_init import *

session_config = tf.ConfigProto()
custom_op = session_config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
custom_op.parameter_map["use_off_line"].b = True
custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes("allow_mix_precision")
custom_op.parameter_map["modify_mixlist"].s = tf.compat.as_bytes('./ops_info.json')
session_config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
session_config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
session_config.gpu_options.allow_growth = hparams.allow_growth
run_config = NPURunConfig(
    model_dir=hparams.job_dir,
    tf_random_seed=hparams.random_seed,
    save_summary_steps=hparams.save_summary_steps,
    save_checkpoints_steps=hparams.save_checkpoints_steps,
    log_step_count_steps=250,
    precision_mode="allow_mix_precision",
    session_config=session_config)
loss_scale_manager = ExponentialUpdateLossScaleManager(
    init_loss_scale=2**32, incr_every_n_steps=1000, decr_every_n_nan_or_inf=2, decr_ratio=0.5)
"""


# How BERT-base and ResNeXt-50 were delivered for the NPU, as their pages show it.
DELIVERED = """\
run_config = NPURunConfig(
    model_dir=self.config.model_dir,
    session_config=session_config,
    keep_checkpoint_max=5,
    save_checkpoints_steps=5000,
    enable_data_pre_proc=True,
    iterations_per_loop=iterations_per_loop,
    precision_mode='allow_mix_precision',
    hcom_parallel=True)
run_config = NPURunConfig(
    hcom_parallel=True, precision_mode='allow_mix_precision', enable_data_pre_proc=True,
    save_checkpoints_steps=50000, session_config=session_config,
    model_dir=self.config['model_dir'], iterations_per_loop=self.config['iterations_per_loop'],
    keep_checkpoint_max=5)
"""


@pytest.mark.parametrize("text", [NLRN, DELIVERED])
def test_correct_ports_have_no_findings(text):
    assert rules(text) == []


@pytest.mark.parametrize(
    ("mistake", "right", "rule"),
    [
        ("allow_mixed_precision", "allow_mix_precision", "lint-option-value"),
        ('"NPUOptimizer"', '"NpuOptimizer"', "lint-optimizer-name"),
        ("precision_mod", "precision_mode", "lint-unknown-option"),
        ('["use_off_line"].i', '["use_off_line"].b', "lint-option-field"),
        ('= "./ops_info.json"', "= tf.compat.as_bytes('./ops_info.json')", "lint-option-type"),
        ("decr_ratio=2", "decr_ratio=0.5", "lint-loss-scale"),
        ("incr_steps=1000", "incr_every_n_steps=1000", "lint-unknown-argument"),
        ("mixlist=x, precision_mode", "precision_mode", "lint-unknown-run-config"),
        ("remapping = RewriterConfig.ON", "remapping = RewriterConfig.OFF", "lint-remapping"),
        (
            "optimizer_options.global_jit_level = RewriterConfig.OFF",
            "rewrite_options.memory_optimization = RewriterConfig.OFF",
            "lint-memory-optimization",
        ),
    ],
)
def test_planted_mistakes_are_found(mistake, right, rule):
    assert right in NLRN
    assert rule in rules(NLRN.replace(right, mistake))


@pytest.mark.parametrize(
    "line",
    [
        'custom_op.parameter_map["precision_mode"].s = b"mix"',
        'custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes("mix")',
        'custom_op.parameter_map["precision_mode"].s = "mix".encode("utf-8")',
        'custom_op.parameter_map["precision_mode"].s = bytes("mix", "utf-8")',
        'MODE = "mix"\ncustom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(MODE)',
        'KEY = "precision_mode"\ncustom_op.parameter_map[KEY].s = b"mix"',
        'options = custom_op.parameter_map\noptions["precision_mode"].s = b"mix"',
        "config.graph_options.rewrite_options.custom_optimizers[0]"
        '.parameter_map["precision_mode"].s = b"mix"',
        "for one in config.graph_options.rewrite_options.custom_optimizers:\n"
        '    if one.name == "NpuOptimizer":\n'
        '        one.parameter_map["precision_mode"].s = b"mix"',
    ],
)
def test_wrong_value_is_found_in_any_notation(line):
    assert rules_with(line) == ["lint-option-value"]


@pytest.mark.parametrize(
    "line",
    [
        'custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(FLAGS.precision_mode)',
        'custom_op.parameter_map["precision_mode"].s = f"{mode}".encode()',
        'custom_op.parameter_map["precision_mode"].s = modes[0]',
        "for key, value in options.items():\n    custom_op.parameter_map[key].s = value",
        'mode = "mix"\nmode = get()\ncustom_op.parameter_map["precision_mode"].s = mode',
        'if v2:\n    custom_op.parameter_map["precision_mode_v2"].s = b"fp16"\n'
        'else:\n    custom_op.parameter_map["precision_mode"].s = b"force_fp16"',
        "for key in keys:\n    custom_op.parameter_map[key].s = b'allow_mix_precision'\n"
        'custom_op.parameter_map["modify_mixlist"].s = b"a.json"',
        'dump = FLAGS.dump\ncustom_op.parameter_map["enable_dump"].b = dump',
    ],
)
def test_values_known_only_at_run_time_are_no_finding(line):
    assert rules_with(line) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2**4", []),
        ("10 * 2**2", []),
        ("2.0**4", ["lint-option-type"]),
        (f"1{'0' * 400} * 1.5", []),
    ],
)
def test_integer_powers_are_integers_and_overflowing_floats_unknown(value, expected):
    assert rules_with(f'custom_op.parameter_map["iterations_per_loop"].i = {value}') == expected


def test_self_referential_json_value_is_unknown():
    lines = """\
def f():
    global options
    options = json.dumps({"output": options})
    custom_op.parameter_map["profiling_options"].s = options
"""
    assert rules("import json\n" + lines) == ["lint-option-unused"]


def test_two_blocks_in_one_scope_are_distinct():
    second = """
custom_op = other.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
custom_op.parameter_map["modify_mixlist"].s = b"a.json"
"""
    first = 'custom_op.parameter_map["precision_mode"].s = b"allow_mix_precision"\n'
    assert rules_with(first + second) == ["lint-option-needs"]


def test_attribute_keeps_its_block_within_the_class():
    text = """
class Trainer:
    def __init__(self):
        self.op = config.graph_options.rewrite_options.custom_optimizers.add()
        self.op.name = "NpuOptimiser"
        self.op.parameter_map["mix_compile_mode"].b = True

    def loop(self):
        self.op.parameter_map["iterations_per_loop"].i = 100
"""
    assert rules(text) == ["lint-optimizer-name", "lint-option-conflict"]


def test_rewriters_may_be_switched_off_on_a_config_attribute():
    text = """
class Trainer:
    def options(self):
        op = self.config.graph_options.rewrite_options.custom_optimizers.add()
        op.name = "NpuOptimizer"

    def rewriters(self):
        self.config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
        self.config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
"""
    assert rules(text) == []
    local = text.replace("self.config", "config").replace(
        ":\n        op", ":\n        config = tf.ConfigProto()\n        op"
    )
    assert rules(local) == ["lint-memory-optimization", "lint-remapping"]


def test_npu_config_proto_switches_remapping_off_and_leaves_memory_optimization():
    assert rules(_HEAD + "session = tf.Session(config=npu_config_proto(config))\n") == [
        "lint-memory-optimization"
    ]


def test_other_grappler_optimizers_are_ignored():
    assert (
        rules(
            """
op = config.graph_options.rewrite_options.custom_optimizers.add()
op.name = "TensorRTOptimizer"
op.parameter_map["minimum_segment_size"].i = 3
op.parameter_map["precision_mode"].s = b"FP16"
"""
        )
        == []
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('size = int(os.getenv("RANK_SIZE"))', ["lint-rank-default"]),
        ('size = int(os.environ.get("RANK_SIZE"))', ["lint-rank-default"]),
        ('size = int(os.environ["RANK_ID"])', ["lint-rank-default"]),
        ('size = int(os.getenv("RANK_SIZE", "1"))', []),
        ('size = int(os.getenv("RANK_SIZE", default="1"))', []),
        ('size = int(os.getenv("RANK_SIZE")) if os.getenv("RANK_SIZE") else 1', []),
        ('if "RANK_SIZE" in os.environ:\n    size = int(os.environ["RANK_SIZE"])', []),
        ('try:\n    size = int(os.environ["RANK_SIZE"])\nexcept KeyError:\n    size = 1', []),
        ('size = int(os.getenv("THREADS"))', []),
        ('size = int(mine.getenv("RANK_SIZE"))', []),
    ],
)
def test_ranks_have_a_default(line, expected):
    assert rules(f"import os\n{line}\n") == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("FixedLossScaleManager(0.5)", ["lint-loss-scale"]),
        ("FixedLossScaleManager(loss_scale=1024)", []),
        ("FixedLossScaleManager(FLAGS.scale)", []),
        ("FixedLossScaleManager()", ["lint-loss-scale"]),
        ("FixedLossScaleManager(**arguments)", []),
        ("ExponentialUpdateLossScaleManager(2**32)", ["lint-loss-scale"]),
        ("ExponentialUpdateLossScaleManager(2**32, 1000, 2, 2, 0.5)", []),
        ("ExponentialUpdateLossScaleManager(2**32, 1000, incr_ratio=0.5)", ["lint-loss-scale"]),
        ("ExponentialUpdateLossScaleManager(0, 0)", ["lint-loss-scale"] * 2),
        ("DumpConfig(enable_dump=True)", ["lint-option-needs"]),
        ('DumpConfig(True, "./", "0|5", "all")', []),
        ('DumpConfig(True, "./", "0,5", "out")', ["lint-option-value"] * 2),
        ("DumpConfig(dump_folder='d')", ["lint-unknown-argument"]),
        (
            "ProfilingConfig(enable_profiling=True, profiling_options='task_trace')",
            ["lint-profiling-options"],
        ),
        ("ProfilingConfig(True, json.dumps({'output': './', 'hccl': 'on'}))", []),
        ("ProfilingConfig(enable_profiling=True)", ["lint-option-needs"]),
        (
            "NPUEstimator(model, config=tf.estimator.RunConfig(model_dir=d))",
            ["lint-estimator-config"],
        ),
        ("NPUEstimator(model, config=NPURunConfig(model_dir=d))", []),
        ("NPURunConfig(10, mix_compile_mode=True)", ["lint-option-conflict"]),
        ("NPURunConfig(dump_config=None, precision_mode=None)", []),
    ],
)
def test_npu_bridge_arguments_are_checked(line, expected):
    head = "import json\nimport tensorflow as tf\nfrom npu_bridge.npu_init import *\n"
    assert rules(head + line + "\n") == expected


def test_aliases_are_followed_and_same_named_classes_ignored():
    alias = "from npu_bridge.estimator.npu.npu_config import NPURunConfig as RC\nRC(protocol=1)\n"
    own = "class NPURunConfig:\n    pass\nNPURunConfig(protocol=1)\n"
    assert rules(alias) == ["lint-unknown-run-config"]
    assert rules(own) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("from npu_bridge.npu_init import NPURunConfg", ["lint-unknown-name"]),
        ("from npu_bridge.npu_init import ExperimentalConfig", ["lint-unknown-name"]),
        ("from npu_bridge.estimator.npu.npu_config import ExperimentalConfig", []),
        (
            "from npu_bridge.estimator import npu_ops\nnpu_ops.dropuot(x, 0.5)",
            ["lint-unknown-name"],
        ),
        ("from npu_bridge.npu_init import *\nnpu_ops.dropout(x, 0.5)", []),
        ("from npu_bridge.npu_init import *\nnpu_unary_ops.gelu(x)", []),
        ("from npu_bridge.npu_init import *\nconfig = NPURunConfig().replace(model_dir=d)", []),
        ("from npu_bridge.npu_init import *\nutil.set_iteration_per_loop(s, op, 10)", []),
        ("from npu_bridge.npu_init import *\ntf.anything(os.path)", []),
        ("from npu_bridge import tf_adapter", []),
        ("from hccl.manage.api import get_rank_size", []),
        ("from hccl.manage.api import get_rank_count", ["lint-unknown-name"]),
    ],
)
def test_names_missing_from_the_package_are_found(line, expected):
    assert rules(line + "\n") == expected


def test_names_of_the_stand_in_and_npu_init_are_known():
    lines = [f"from npu_bridge.npu_init import {name}" for name in sorted(NPU_INIT_NAMES)]
    assert rules("\n".join(lines) + "\n") == []


@pytest.mark.parametrize(
    ("setting", "arguments", "expected"),
    [
        ('["iterations_per_loop"].i = 100', "", ["lint-overridden"]),
        ('["iterations_per_loop"].i = 100', ", iterations_per_loop=100", []),
        ('["iterations_per_loop"].i = 100', ", iterations_per_loop=FLAGS.n", []),
        ('["iterations_per_loop"].i = 100', ", **more", []),
        ('["precision_mode"].s = b"allow_mix_precision"', "", ["lint-overridden"]),
        (
            '["precision_mode"].s = b"allow_mix_precision"',
            ', precision_mode="allow_mix_precision"',
            [],
        ),
        ('["use_off_line"].b = True', "", []),
    ],
)
def test_block_overwritten_by_the_estimator_is_found(setting, arguments, expected):
    line = f"custom_op.parameter_map{setting}\nNPURunConfig(session_config=config{arguments})"
    assert rules_with(line) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('DumpConfig(True, "/dump")', ["lint-missing-folder"]),
        ('DumpConfig(True, "./")', []),
        ('os.makedirs("/dump")\nDumpConfig(True, "/dump")', []),
        ("DumpConfig(True, FLAGS.dump)", []),
        (
            'custom_op.parameter_map["profiling_mode"].b = True\n'
            'custom_op.parameter_map["profiling_options"].s = b\'{"output": "/cache/p"}\'',
            ["lint-missing-folder"],
        ),
    ],
)
def test_folder_that_nothing_creates_is_named(lines, expected):
    assert rules_with(lines) == expected


def test_finding_has_its_location_with_columns_in_characters():
    text = f'{_HEAD}x = "中文"; custom_op.parameter_map["a_b"].b = True\n{_OFF}'
    (found,) = lint_source("train.py", text)
    line = text.splitlines()[found.place.line - 1]
    assert line[found.place.column - 1 :].startswith(found.code)


@pytest.mark.parametrize("options", all_options())
def test_generated_ports_pass(options: PortOptions):
    arguments = ", ".join(f"{key}={value}" for key, value in run_config_arguments(options))
    block = session_config_function(
        options, name="npu_session_config", config_proto_name="npu_config_proto"
    )
    head = "from npu_bridge.npu_init import *\n"
    assert rules(f"{head}{block}") == []
    assert rules(f"{head}{run_config_functions(options)}\nNPURunConfig({arguments})\n") == []


@given(
    st.dictionaries(
        st.sampled_from(sorted(ADAPTER_OPTIONS)),
        st.one_of(st.booleans(), st.integers(-5, 5), st.sampled_from([b"auto", "1,2", b"x:1"])),
    )
)
def test_linter_survives_any_block(block):
    lines = [f'custom_op.parameter_map["{key}"].s = {value!r}' for key, value in block.items()]
    for found in lint_source("train.py", _HEAD + "\n".join(lines) + "\n" + _OFF):
        assert found.reason.zh
        assert found.todo.zh


def test_tree_is_searched_without_following_links(tmp_path):
    (tmp_path / "tree" / "inside").mkdir(parents=True)
    (tmp_path / "outside.py").write_text(_HEAD)
    (tmp_path / "tree" / "link.py").symlink_to(tmp_path / "outside.py")
    (tmp_path / "tree" / "loop").symlink_to(tmp_path / "tree", target_is_directory=True)
    (tmp_path / "tree" / "inside" / "train.py").write_text(_HEAD)
    (tmp_path / "tree" / "old.py").write_text('print "NPU"\n')
    (tmp_path / "tree" / "binary.py").write_bytes(b"NPU\0")

    report = lint_tree(tmp_path / "tree")

    assert [(file.path, file.status) for file in report.files] == [
        ("binary.py", "unreadable"),
        ("inside/train.py", "unchanged"),
        ("old.py", "unreadable"),
    ]
    assert [found.rule for found in report.files[1].findings] == [
        "lint-memory-optimization",
        "lint-remapping",
    ]


LINT = """
try:
    print([(file.path, file.note.en) for file in lint_tree(Path(sys.argv[1])).files if file.note])
except UserError as error:
    print(error)
"""


def test_closed_folder_is_reported_and_an_error_if_nothing_else_was_checked():
    imports = (
        "import sys\nfrom pathlib import Path\nfrom jumar.ground.errors import UserError\n"
        "from jumar.porting.lint.linting import lint_tree"
    )
    with open_folder() as folder:
        (folder / "closed").mkdir(mode=0)
        said = run_without_rights(imports, LINT, folder / "closed", cwd=folder)
        assert said.startswith(f"{folder / 'closed'}: cannot be read: Permission denied")
        said = run_without_rights(imports, LINT, folder, cwd=folder)
        assert "nothing was checked" in said
        assert "closed: cannot be read: Permission denied" in said
        (folder / "train.py").write_text(NLRN)
        said = run_without_rights(imports, LINT, folder, cwd=folder)
        assert said == "[('closed', 'cannot be read: Permission denied')]\n"


@pytest.mark.parametrize("content", [b"NPU\0", b"x = = 1  # NPU\n"])
def test_command_does_not_pass_if_scripts_cannot_be_read(content, tmp_path, capsys):
    script = tmp_path / "train.py"
    script.write_bytes(content)
    for path in (script, tmp_path):
        with pytest.raises(UserError, match="nothing was checked"):
            lint_command(path)
    (tmp_path / "right.py").write_text(NLRN)
    assert lint_command(tmp_path) == 1
    assert "Scripts: 2. Findings: 0. Not readable: 1." in capsys.readouterr().out


def test_folder_without_scripts_is_an_error(tmp_path):
    with pytest.raises(UserError, match="contains no Python script"):
        lint_tree(tmp_path)


def test_missing_path_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match="there is no"):
        lint_tree(tmp_path / "nothing")


def test_command_exits_with_1_if_there_are_findings(tmp_path, capsys):
    script = tmp_path / "train.py"
    script.write_text(NLRN)
    assert lint_command(script) == 0
    assert capsys.readouterr().out == "Scripts: 1. Findings: 0. Not readable: 0.\n"

    script.write_text(NLRN.replace("NpuOptimizer", "NPUOptimizer"))
    assert lint_command(script, lang="zh") == 1
    assert "train.py:5:18: 阻塞 [lint-optimizer-name]" in capsys.readouterr().out

    assert lint_command(script, json_=True) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["path"], found["line"], found["column"]) == ("train.py", 5, 18)
    assert found["rule"] == "lint-optimizer-name"


def test_linter_needs_no_torch():
    program = (
        "import sys, jumar.cli.port_lint, jumar.porting.lint.linting\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    source = Path(__file__).resolve().parents[3] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_docs_page_names_exactly_the_existing_rules():
    checkout = Path(__file__).resolve().parents[3]
    source = "".join(
        path.read_text()
        for pattern in ("lint/*.py", "npu/option*.py")
        for path in (checkout / "src/jumar/porting").glob(pattern)
    )
    rules_of_source = {*re.findall(r'"(lint-[a-z-]+[a-z])"', source)}
    rules_of_source |= {"lint-remapping", "lint-memory-optimization"}
    rows = [
        line.split("|")[1]
        for line in (checkout / "docs/port-lint.md").read_text().splitlines()
        if line.startswith("| `lint-")
    ]
    assert {*re.findall(r"`(lint-[a-z-]+)`", " ".join(rows))} == rules_of_source
