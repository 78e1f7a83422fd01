"""Exceptions that only pass on another one give way to the message below or above them."""

from pathlib import Path

import pytest

from jumar.failures.reading.raised import is_wrapped
from tests.failures.explaining import explain_text, named

RULE = "-" * 66
USER_CODE = """\
ValueError: in user code:

    File "/job/data.py", line 191, in restructure  *
        raise ValueError(

    ValueError: Length of absolute_action_mask (14) does not match action dimension (7).
"""
NESTED = """\
ValueError: in user code:

    File "/env/site-packages/keras/engine/training.py", line 1051, in train_function  *
        return step_function(self, iterator)

    ValueError: Exception encountered when calling layer "sequential" (type Sequential).

    in user code:

        File "/job/model.py", line 10, in call  *
            return self.branch(a)

        ValueError: Unexpected result of the branch (7).
"""
KERAS = """\
ValueError: Exception encountered when calling layer 'hub' (type KerasLayer).

Setting hub.KerasLayer.trainable = True is unsupported when loading from the TF1 Hub format.

Call arguments received by layer 'hub' (type KerasLayer):
"""
COLOURED = """\
ValueError: Exception encountered when calling Sequential.call().

\x1b[1mInvalid input shape for input Tensor(5). Expected shape (None, 7)\x1b[0m
"""
GRAPH = """\
InvalidArgumentError: Graph execution error:

Detected at node UnsortedSegmentSum defined at (most recent call last):
<stack traces unavailable>
UnsortedSegmentSum requires indices shape to be prefix of data_shape

Stack trace for op definition:
"""
GRAPH_WITH_FRAMES = """\
tensorflow.python.framework.errors_impl.UnimplementedError: Graph execution error:

Detected at node 'model/Cast' defined at (most recent call last):
    File "/job/train.py", line 9, in <module>
      model.fit(x)
Node: 'model/Cast'
Cast string to float is not supported
\t [[{{node model/Cast}}]] [Op:__inference_train_function_1]
"""
PLACE = """\
InvalidArgumentError: Exception encountered when calling layer 'a' (type Odd).

{{function_node __wrapped__Odd_device_/job:localhost/replica:0/task:0}} The axes differ [Op:Odd]
"""
HYDRA = """\
Error executing job with overrides: []
Error in call to target 'gym.envs.registration.make':
FatalError('gladLoadGL error')
full_key: task.env
"""
HYDRA_KEY = """\
Error in call to target 'diffusion_policy.dataset.ReplayImageDataset':
KeyError('meta')
"""
COMPILED = """\
torch._dynamo.exc.TorchRuntimeError: Failed running call_function linear>(*(FakeTensor(size=(1, 1),
           grad_fn=<MeanBackward1>), Parameter(FakeTensor(..., size=(6, 2048))
), **{}):
a and b must have same reduction dim, but got [1, 1] X [2048, 6].
"""
BECAUSE = "because of the following error (look up to see its traceback):"
IMPORTED = f"""\
RuntimeError: Failed to import transformers.models.a.modeling_a {BECAUSE}
Failed to import transformers.generation.utils {BECAUSE}
Dynamo is not supported on Python 3.12+
"""
SCRIPTED = """\
RuntimeError: The following operation failed in the TorchScript interpreter.
Traceback of TorchScript (most recent call last):
    def fn():
        if torch.rand(2):
           ~~~~~~~~~~~~ <--- HERE
RuntimeError: Boolean value of Tensor with more than one value is ambiguous
"""
MINDSPORE = f"""\
RuntimeError: Exception thrown from user defined Python function in dataset.

{RULE}
- Dataset Pipeline Error Message:
{RULE}
[ERROR] Crop: Crop height dimension: 8 exceeds image height: 3.

{RULE}
- C++ Call Stack: (For framework developers)
"""
MINDSPORE_PYTHON = f"""\
E    RuntimeError: Exception thrown from user defined Python function in dataset.
E    - Python Call Stack:
E    Traceback (most recent call last):
E      File "/env/mindspore/dataset/vision/py_transforms_util.py", line 472, in _input_to_factor
E        raise ValueError("Crop size")
E    ValueError: Crop size (5000, 5000) is larger than input image size (2268, 4032).
E
E    {RULE}
E    - Dataset Pipeline Error Message:
E    {RULE}
E    [ERROR] Execute user Python code failed, check 'Python Call Stack' above.
E
E    {RULE}
E    - C++ Call Stack: (For framework developers)
"""
VALIDATED = """\
pydantic.ValidationError: 2 validation errors for DeepSpeedZeroConfig
stage3_prefetch_bucket_size
  Input should be a valid integer, got a number with a fractional part [type=int_from_float]
"""
GENERATED = """\
Traceback (most recent call last):
  File "/job/data.py", line 7, in load
    table.to_pylist()
pyarrow.lib.ArrowNotImplementedError: Nested data conversions not implemented

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/job/data.py", line 3, in main
    load()
datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset
"""
CALLBACK = """\
XlaRuntimeError: INTERNAL: CpuCallback error: Traceback (most recent call last):
  File "/env/jax/_src/pure_callback.py", line 90, in pure_callback_impl
OddError: the callback met 7
"""
DESERIALIZED = """\
TypeError: <class 'keras.src.models.functional.Functional'> could not be deserialized properly.

config={'module': 'keras', 'name': 'a'}

Exception encountered: Unrecognized keyword arguments passed to DepthwiseConv2D: {'groups': 1}
"""
FRAMEWORK = f"""\
RuntimeError: Compile graph kernel_graph0 failed.

{RULE}
- Framework Error Message:
{RULE}
The odd operator got 7 inputs.
"""
MAPPED = MINDSPORE.replace("Crop: Crop height dimension", "map operation: [Decode] failed. Crop")


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (USER_CODE, "ValueError: Length of absolute_action_mask (14)"),
        (NESTED, "ValueError: Unexpected result of the branch (7)."),
        (KERAS, "Setting hub.KerasLayer.trainable = True is unsupported"),
        (COLOURED, "Invalid input shape for input Tensor(5). Expected shape (None, 7)"),
        (GRAPH, "UnsortedSegmentSum requires indices"),
        (GRAPH_WITH_FRAMES, "Cast string to float is not supported"),
        (PLACE, "The axes differ"),
        (HYDRA, "FatalError('gladLoadGL error')"),
        (HYDRA_KEY, "KeyError('meta')"),
        (COMPILED, "a and b must have same reduction dim"),
        (IMPORTED, "Dynamo is not supported on Python 3.12+"),
        (SCRIPTED, "RuntimeError: Boolean value of Tensor"),
        (MINDSPORE, "[ERROR] Crop: Crop height dimension: 8 exceeds image height: 3."),
        (MINDSPORE_PYTHON, "ValueError: Crop size (5000, 5000) is larger"),
        (VALIDATED, "Input should be a valid integer"),
        (CALLBACK, "OddError: the callback met 7"),
        (DESERIALIZED, "Exception encountered: Unrecognized keyword arguments"),
        (FRAMEWORK, "The odd operator got 7 inputs."),
        (MAPPED, "[ERROR] map operation: [Decode] failed. Crop: 8 exceeds"),
        (GENERATED, "pyarrow.lib.ArrowNotImplementedError: Nested data"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "[rank0]: "])
def test_message_that_was_passed_on_is_quoted(
    tmp_path: Path, log: str, says: str, prefix: str
) -> None:
    text = "".join(f"{prefix}{line}" for line in log.splitlines(keepends=True))
    first = explain_text(tmp_path, log=text).candidates[0].first
    assert first.says.startswith(says)


def test_message_that_the_table_knows_is_explained(tmp_path: Path) -> None:
    log = PLACE.replace("The axes differ", "Incompatible shapes: [32,64] vs. [32,32]")
    assert named(explain_text(tmp_path, log=log)) == ["tf-shapes"]


def test_name_of_an_exception_that_is_passed_on_does_not_stand_for_its_cause(
    tmp_path: Path,
) -> None:
    log = (
        "torch.OutOfMemoryError: Caught OutOfMemoryError in replica 0 on device 0.\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB.\n"
    )
    assert named(explain_text(tmp_path, log=log)) == ["cuda-out-of-memory"]


def test_exception_that_only_passes_on_another_is_named_if_that_is_missing(tmp_path: Path) -> None:
    explanation = explain_text(tmp_path, log="ValueError: in user code:\n")
    assert named(explanation) == ["exception-without-reason"]


def test_messages_of_two_ranks_are_distinguished(tmp_path: Path) -> None:
    lines = GRAPH.splitlines(keepends=True)
    log = f"[rank0]: {lines[0]}[rank1]: some words of another rank\n"
    log += "".join(f"[rank0]: {line}" for line in lines[1:])
    first = explain_text(tmp_path, log=log).candidates[0].first
    assert first.rank == 0
    assert first.says.startswith("UnsortedSegmentSum requires indices")


def test_lines_after_the_message_are_ordinary_again(tmp_path: Path) -> None:
    explanation = explain_text(tmp_path, log=KERAS + "the run ends here\n" * 3)
    assert [each.first.count for each in explanation.candidates] == [1]


@pytest.mark.parametrize(
    ("line", "passes_on"),
    [
        ("IndexError: Caught IndexError in DataLoader worker process 25.", True),
        ("2024-01-01 10:00:00 [ERROR] ValueError: in user code:", True),
        ("ValueError: the layer in user code: none", False),
        ("RuntimeError: Failed to import a.b because of the following error (x): No c", False),
        ("OddError: An error occurred while generating the dataset", True),
        ("OddError: An error occurred while generating: no such file", False),
    ],
)
def test_exception_that_only_passes_on_another(line: str, passes_on: bool) -> None:
    assert is_wrapped(line) == passes_on


def test_task_of_ray_gives_way_to_its_exception(tmp_path: Path) -> None:
    log = """\
ray.exceptions.RayTaskError(OddError): ray::train() (pid=2182, ip=10.0.0.4)
  File "/job/train.py", line 39, in get_packed_indexed_dataset
    return packed[0]
OddError: no column
"""
    assert explain_text(tmp_path, log=log).candidates[0].first.says == "OddError: no column"


SLOW = (
    "[WARNING] DEVICE(4,f,python):2023-08-21-08:15:14.246.438 [a.cc:776] DumpTaskExceptionInfo] "
    "GetNext error may be caused by slow data processing (bigger than 20s / batch)\n"
)


def test_warning_that_explains_a_failure_is_its_cause(tmp_path: Path) -> None:
    failed = "[ERROR] MD(4,f,python):2023-08-21-08:14:40.677.158 [a.cc:223] X] Odd failure 7\n"
    assert named(explain_text(tmp_path, log=failed + SLOW))[0] == "ms-data-slow"
    trained = SLOW + "step 1 loss 2.3\n" * 60 + "OddError: no\n"
    assert named(explain_text(tmp_path, log=trained))[0] == "python-exception"


def test_message_that_says_only_that_something_failed_explains_no_code(tmp_path: Path) -> None:
    log = FRAMEWORK.replace("The odd operator got 7 inputs.", "Odd graph failed.")
    log = log.replace("Compile graph kernel_graph0 failed.", "error code is 507015")
    assert named(explain_text(tmp_path, log=log))[0] == "npu-aicore-exception"
