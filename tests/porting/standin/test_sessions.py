"""How importing the stand-in changes sessions, in TensorFlow 1.15."""

from pathlib import Path
from typing import Any

import pytest

from tests.porting.standin.standing import run_beside_standin

pytestmark = pytest.mark.slow

PROGRAM = """
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

def block(config):
    made = config.graph_options.rewrite_options.custom_optimizers.add()
    made.name = "NpuOptimizer"
    return made

def facts(config):
    rewrites = config.graph_options.rewrite_options
    return {
        "blocks": [one.name for one in rewrites.custom_optimizers],
        "soft": config.allow_soft_placement,
        "log": config.log_device_placement,
        "remapping": rewrites.remapping == RewriterConfig.OFF,
        "memory": rewrites.memory_optimization == RewriterConfig.OFF,
        "jit": config.graph_options.optimizer_options.global_jit_level,
    }

import npu_bridge
before = tf.ConfigProto(log_device_placement=True)
tf.Session(config=before).close()
ANSWERS["without npu_init"] = facts(before)
hand = tf.ConfigProto()
block(hand).parameter_map["precision_mode"].s = b"allow_mix_precison"
with said("hand-written block"):
    ANSWERS["checked without npu_init"] = error(tf.Session, config=hand)

from npu_bridge.npu_init import *

given = tf.ConfigProto(log_device_placement=True)
tf.Session(config=given).close()
ANSWERS["keyword"] = facts(given)
third = tf.ConfigProto()
tf.Session("", tf.Graph(), third).close()
ANSWERS["third"] = facts(third)
ANSWERS["none in third place"] = error(tf.Session, "", None, None)
with tf.Session(config=None) as sess:
    ANSWERS["runs"] = int(sess.run(tf.constant(3)))
sess = tf.InteractiveSession()
ANSWERS["interactive"] = [int(tf.constant(4).eval()), facts(sess._config)["blocks"]]
sess.close()

kept = tf.ConfigProto()
block(kept).parameter_map["mix_compile_mode"].b = True
tf.Session(config=kept).close()
ANSWERS["kept"] = facts(kept)
ANSWERS["kept value"] = kept.graph_options.rewrite_options.custom_optimizers[0].parameter_map[
    "mix_compile_mode"].b

with said("typo"):
    typo = tf.ConfigProto()
    made = block(typo)
    made.parameter_map["precision_mod"].s = b"force_fp16"
    made.parameter_map["mix_compile_mode"].i = 1
    with tf.Session(config=npu_config_proto(typo)) as sess:
        sess.run(tf.constant(1))
refused = tf.ConfigProto()
made = block(refused)
made.parameter_map["precision_mode"].s = b"force_fp16"
made.parameter_map["modify_mixlist"].s = b"ops.json"
with said("after the refusal"):
    ANSWERS["refused"] = error(tf.Session, config=refused)
with said("all is well"):
    fine = npu_config_proto()
    made = fine.graph_options.rewrite_options.custom_optimizers[0]
    made.parameter_map["precision_mode"].s = tf.compat.as_bytes("allow_mix_precision")
    made.parameter_map["dump_path"].s = tf.compat.as_bytes(folder)
    made.parameter_map["enable_dump_debug"].b = True
    tf.Session(config=fine).close()

with tf.Graph().as_default():
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    hooks = npu_hooks_append([tf.train.StopAtStepHook(num_steps=3)])
    with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:
        runs = 0
        while not sess.should_stop():
            sess.run(train)
            runs += 1
        ANSWERS["monitored"] = [runs, len(hooks), type(hooks[1]).__name__]
with tf.Graph().as_default():
    tf.Variable(0.0)
    supervisor = tf.train.Supervisor(logdir=folder)
    with supervisor.managed_session(config=npu_config_proto()) as sess:
        ANSWERS["supervisor"] = facts(sess._config)["blocks"]

with said("dropped"):
    ANSWERS["tuple"] = [type(one).__name__ for one in npu_hooks_append((NpuEmptyHook(),))]
    ANSWERS["nothing"] = [type(one).__name__ for one in npu_callbacks_append()]
    replaced = npu_run_config_init("no run config")
ANSWERS["replaced"] = type(replaced).__name__
own = tf.estimator.RunConfig(model_dir=folder, session_config=tf.ConfigProto())
ANSWERS["run config"] = [npu_run_config_init(own) is own, facts(own.session_config)]

ANSWERS["too early"] = error(get_npu_rank_id)
sess, shutdown = init_resource()
ANSWERS["ranks"] = [get_npu_rank_id(), get_npu_local_rank_id(),
                    get_npu_rank_size(), get_npu_local_rank_size()]
shutdown_resource(sess, shutdown)
close_session(sess)
ANSWERS["closed"] = error(sess.run, shutdown)
util.global_dict_init()
ANSWERS["forgotten"] = get_npu_rank_size()
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    folder: Path = tmp_path_factory.mktemp("sessions")
    return run_beside_standin(PROGRAM, folder)


@pytest.fixture
def answers(ran: tuple[dict[str, Any], list[dict[str, Any]]]) -> dict[str, Any]:
    return ran[0]


@pytest.fixture
def events(ran: tuple[dict[str, Any], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return ran[1]


FOR_NPU = {
    "blocks": ["NpuOptimizer"],
    "soft": True,
    "log": False,
    "remapping": True,
    "memory": True,
    "jit": -1,
}


def test_importing_npu_bridge_alone_changes_no_session(answers: dict[str, Any]) -> None:
    assert answers["without npu_init"] == {
        **FOR_NPU,
        "blocks": [],
        "soft": False,
        "log": True,
        "remapping": False,
        "memory": False,
        "jit": 0,
    }


def test_importing_npu_bridge_alone_checks_blocks(answers: dict[str, Any]) -> None:
    assert answers["checked without npu_init"].startswith("ValueError: npu_bridge stand-in: ")
    assert "'allow_mix_precison'" in answers["checked without npu_init"]


def test_npu_init_configures_every_session_for_the_npu_in_place(answers: dict[str, Any]) -> None:
    assert answers["keyword"] == FOR_NPU
    assert answers["third"] == FOR_NPU
    assert answers["runs"] == 3
    assert answers["interactive"] == [4, ["NpuOptimizer"]]
    assert answers["supervisor"] == ["NpuOptimizer"]


def test_none_in_third_place_fails_as_in_the_real_package(answers: dict[str, Any]) -> None:
    assert answers["none in third place"].startswith("AttributeError")


def test_hand_written_block_is_kept_and_its_memory_optimization_left_alone(
    answers: dict[str, Any],
) -> None:
    assert answers["kept"] == {**FOR_NPU, "memory": False}
    assert answers["kept value"] is True
    assert "memory_optimization is DEFAULT_MEM_OPT" in answers["hand-written block"]
    assert "remapping is DEFAULT" in answers["hand-written block"]


def test_options_ignored_by_the_adapter_are_reported_on_stderr(answers: dict[str, Any]) -> None:
    lines = [line for line in answers["typo"].splitlines() if "stand-in" in line]
    assert all(line.startswith("npu_bridge stand-in: ") for line in lines)
    assert any("did you mean 'precision_mode'?" in line for line in lines)
    assert any("mix_compile_mode" in line and "counts as False" in line for line in lines)


def test_options_refused_by_the_adapter_stop_the_session(answers: dict[str, Any]) -> None:
    assert answers["refused"].startswith("ValueError: npu_bridge stand-in: modify_mixlist = ")


def test_refusal_is_the_last_message(answers: dict[str, Any]) -> None:
    assert "Exception ignored" not in answers["after the refusal"]


def test_correct_block_is_silent(answers: dict[str, Any]) -> None:
    assert "stand-in" not in answers["all is well"]


def test_monitored_session_runs_with_the_broadcast_hook(answers: dict[str, Any]) -> None:
    assert answers["monitored"] == [3, 2, "NPUBroadcastGlobalVariablesHook"]


def test_non_list_argument_is_dropped_and_reported(answers: dict[str, Any]) -> None:
    assert answers["tuple"] == ["NPUBroadcastGlobalVariablesHook"]
    assert answers["nothing"] == ["NPUBroadcastGlobalVariablesCallback"]
    assert "npu_hooks_append drops its argument" in answers["dropped"]
    assert "npu_callbacks_append" not in answers["dropped"]
    assert "npu_run_config_init drops its argument" in answers["dropped"]
    assert answers["replaced"] == "RunConfig"


def test_run_config_gets_the_block_in_place(answers: dict[str, Any]) -> None:
    assert answers["run config"] == [True, FOR_NPU]


def test_ranks_are_known_only_after_init_resource(answers: dict[str, Any]) -> None:
    assert answers["too early"].startswith("NameError")
    assert answers["ranks"] == [0, 0, 1, 1]
    assert answers["closed"].startswith("RuntimeError")
    assert answers["forgotten"] == 1


def test_record_describes_the_scripts_actions(events: list[dict[str, Any]]) -> None:
    sessions = [event for event in events if event["kind"] == "session" and "npu" in event]
    assert sessions[0]["npu"] is False
    assert {"precision_mode": "allow_mix_precision"}.items() <= next(
        event["options"][0] for event in sessions if "dump_path" in str(event.get("options"))
    ).items()
    kinds = {(event["kind"], event.get("key", event.get("function"))) for event in events}
    assert ("ignored option", "precision_mod") in kinds
    assert ("refused option", "modify_mixlist") in kinds
    assert ("dropped argument", "npu_hooks_append") in kinds
