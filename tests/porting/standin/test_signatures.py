"""The stand-in's functions from recorded signatures, without TensorFlow."""

import importlib
import inspect
from typing import Any

import pytest

from jumar.porting.npu.names import NPU_NAMES
from jumar.porting.standin import standin_data, standin_folder

AICORE = "npu_bridge.estimator.npu_aicore_ops"


@pytest.fixture(scope="module")
def signatures() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(standin_folder()))
        yield importlib.import_module("npu_bridge_standin.signatures")


def test_function_of_the_device_says_so_when_it_is_called(signatures: Any) -> None:
    namespace: dict[str, Any] = {"__name__": AICORE}
    signatures.add_device_only(namespace)
    with pytest.raises(NotImplementedError, match="nonzerowithvalue runs only on an Ascend device"):
        namespace["nonzerowithvalue"]([1.0], transpose=True)
    assert list(inspect.signature(namespace["prodforcesea"]).parameters)[-2:] == ["n_r_sel", "name"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [((), {}), ((1,), {"transposed": True}), ((1, 2, 3, 4, 5), {}), ((1,), {"x": 1})],
)
def test_arguments_refused_by_the_real_function_are_refused(
    arguments: tuple[int, ...], names: dict[str, Any], signatures: Any
) -> None:
    namespace: dict[str, Any] = {"__name__": AICORE}
    signatures.add_device_only(namespace)
    with pytest.raises(TypeError, match=r"nonzerowithvalue\(\) "):
        namespace["nonzerowithvalue"](*arguments, **names)


def test_module_definitions_are_kept(signatures: Any) -> None:
    namespace: dict[str, Any] = {"__name__": AICORE, "tabulatefusion": len}
    signatures.add_device_only(namespace)
    assert namespace["tabulatefusion"] is len


def test_call_is_bound_with_the_defaults(signatures: Any) -> None:
    signature = signatures.signature_of("npu_bridge.estimator.npu.npu_config", "DumpConfig")
    given = signatures.bound(signature, "__init__", (True,), {"dump_mode": "all"})
    assert list(given.items())[:4] == [
        ("enable_dump", True),
        ("dump_path", None),
        ("dump_step", None),
        ("dump_mode", "all"),
    ]
    assert given["dump_debug_mode"] == "all"


def test_every_recorded_name_exists_in_the_real_package_and_is_callable(signatures: Any) -> None:
    for module, names in standin_data("signatures").items():
        for name, parameters in names.items():
            assert module not in NPU_NAMES or name in NPU_NAMES[module], (module, name)
            if parameters is not None:
                signatures.signature_of(module, name)
