"""The recorded names of the real package, and which of them the stand-in has."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from jumar.porting.npu.names import NPU_NAMES, NPU_OPERATORS, OPERATOR_HANDLES, is_npu_name
from tests.porting.standin.standing import run_beside_standin

INSIDE = {
    # Parameter servers, data sets on the device: no port writes them, and a CPU has neither.
    "npu_bridge.embedding.embedding_optimizer",
    "npu_bridge.embedding.embedding_resource",
    "npu_bridge.embedding.embedding_service",
    "npu_bridge.embedding.embedding_table_map_policy",
    "npu_bridge.embedding.tf_path",
    "npu_bridge.experimental.dataset_ops",
    "npu_bridge.experimental.file_constant",
    "npu_bridge.experimental.get_shape",
    "npu_bridge.experimental.hccl",
    "npu_bridge.experimental.image",
}
"""Modules that the stand-in leaves out."""

UNUSED = {
    "npu_bridge.estimator.npu.npu_config.set_npu_default_config",
    "npu_bridge.estimator.npu.npu_estimator.no_check_override",
}
"""Names that only the real package itself calls."""

PROGRAM = """
import importlib
ANSWERS["missing"] = []
for module, expected in NAMES.items():
    found = importlib.import_module(module)
    ANSWERS["missing"] += [
        "{}.{}".format(module, name) for name in expected if not hasattr(found, name)]
handles = [importlib.import_module(path.rpartition(".")[0]) for path in HANDLES]
ANSWERS["handles"] = [hasattr(getattr(found, path.rpartition(".")[2]), "gelu")
                      for found, path in zip(handles, HANDLES)]
namespace = {}
exec("from npu_bridge.npu_init import *", namespace)
ANSWERS["star"] = sorted(name for name in namespace if not name.startswith("_"))
ANSWERS["undocumented"] = [
    name for name in dir(handles[0]) if name.startswith("hcom_") and name not in OPERATORS]
"""


@pytest.mark.parametrize(
    "name",
    [
        "npu_bridge",
        "npu_bridge.estimator",
        "npu_bridge.estimator.npu.npu_config.NPURunConfig",
        "npu_bridge.npu_init",
        "npu_bridge.npu_init.npu_config_proto",
        "npu_bridge.npu_init.util.set_iteration_per_loop",
        "npu_bridge.npu_init.npu_ops.dropout",
        "npu_bridge.npu_init.npu_unary_ops.gelu",
        "npu_bridge.npu_init.hccl_ops.broadcast",
        "npu_bridge.npu_init.npu_embedding.es_initializer",
        "npu_bridge.npu_init.tf.Session",
        "npu_bridge.estimator.npu_unary_ops.npu_unary_ops.gelu",
        "hccl.manage.api.get_rank_id",
    ],
)
def test_real_package_names_are_recognised(name: str) -> None:
    assert is_npu_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "tensorflow.Session",
        "npu",
        "npu_bridge.npu_init.npu_config_protos",
        "npu_bridge.npu_init.ExperimentalConfig",
        "npu_bridge.npu_init.npu_unary_ops.gelus",
        "npu_bridge.npu_init.npu_unary_ops.npu_unary_ops.gelu",
        "npu_bridge.npu_init.util.no_such_function",
        "npu_bridge.npu_init.npu_config_proto.anything",
        "npu_bridge.estimators",
        "hccl.manage.api.get_rank",
    ],
)
def test_other_names_are_not_recognised(name: str) -> None:
    assert not is_npu_name(name)


def test_every_recorded_name_is_recognised() -> None:
    for module, names in NPU_NAMES.items():
        assert is_npu_name(module)
        assert all(is_npu_name(f"{module}.{name}") for name in names)


def test_star_import_names_match_npu_init() -> None:
    exports = importlib.import_module("jumar.porting.npu.exports")
    recorded = NPU_NAMES["npu_bridge.npu_init"]
    assert recorded - {"decorator_tf_session"} == exports.NPU_INIT_NAMES


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("names")
    wanted = {
        module: sorted(name for name in names if f"{module}.{name}" not in UNUSED)
        for module, names in NPU_NAMES.items()
        if module not in INSIDE
    }
    given = f"NAMES = json.loads({json.dumps(json.dumps(wanted))})\n"
    given += f"HANDLES = {sorted(OPERATOR_HANDLES)!r}\nOPERATORS = {sorted(NPU_OPERATORS)!r}\n"
    return run_beside_standin(given + PROGRAM + "\nopen(sys.argv[2], 'a').close()\n", folder)[0]


@pytest.mark.slow
def test_every_name_that_a_port_may_write_is_in_the_stand_in(answers: dict[str, Any]) -> None:
    assert answers["missing"] == []
    assert all(answers["handles"])


@pytest.mark.slow
def test_star_import_has_exactly_the_real_names(
    answers: dict[str, Any],
) -> None:
    assert set(answers["star"]) == NPU_NAMES["npu_bridge.npu_init"]


@pytest.mark.slow
def test_stand_in_operators_have_the_real_signatures(answers: dict[str, Any]) -> None:
    assert answers["undocumented"] == []
