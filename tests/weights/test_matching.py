"""A file compared with a network: matches, unmatched names, different shapes."""

import pytest

from jumar.models.tf_layout import (
    ConvolutionKernel,
    DenseKernelAfterFlatten,
    TfNames,
    TfVariable,
    Unchanged,
    dense_variables,
)
from jumar.weights.matching import Matching, match_names, tensorflow_shape
from jumar.weights.tensor_types import TensorEntry

AVERAGE = "/ExponentialMovingAverage"
SHAPES = {"net.weight": (5, 3), "net.bias": (5,), "norm.num_batches_tracked": ()}
FILE = {"scope/dense/kernel": (3, 5), "scope/dense/bias": (5,)}


def matched(
    file: dict[str, tuple[int, ...]],
    *,
    names: TfNames | None = None,
    shapes: dict[str, tuple[int, ...]] = SHAPES,
) -> Matching:
    names = names or TfNames(variables=dense_variables("scope/dense", "net"))
    entries = {n: TensorEntry(name=n, shape=shape, dtype="float32") for n, shape in file.items()}
    return match_names(names, entries, shapes)


def placed(matching: Matching) -> dict[str, tuple[str, str]]:
    return {match.variable.name: (match.raw, match.average) for match in matching.matches}


def is_whole(matching: Matching) -> bool:
    return not (matching.wrong_shape or matching.missing or matching.unnamed or matching.leftover)


def test_every_name_is_matched_and_batch_counters_need_none() -> None:
    result = matched(FILE)
    assert placed(result) == {
        "net.weight": ("scope/dense/kernel", ""),
        "net.bias": ("scope/dense/bias", ""),
    }
    assert is_whole(result)
    assert not result.has_averages


@pytest.mark.parametrize("averages", ["none", "beside", "swapped"])
def test_averages_are_named_as_by_the_originals_saver(averages: str) -> None:
    names = TfNames(variables=dense_variables("scope/dense", "net"), averages=averages)  # type: ignore[arg-type]
    plain, other = "scope/dense/kernel", f"scope/dense/kernel{AVERAGE}"
    result = matched({**FILE, other: (3, 5)}, names=names)
    expected = (other, plain) if averages == "swapped" else (plain, other)
    assert placed(result)["net.weight"] == expected
    # What has no average there, such as a discriminator, is its own value in either case.
    assert placed(result)["net.bias"] == ("scope/dense/bias", "")
    assert is_whole(result)
    assert result.has_averages


def test_unmatched_names_on_either_side_are_reported() -> None:
    result = matched(
        {"scope/dense/kernel": (3, 5), "other": (1,), f"gone{AVERAGE}": ()},
        shapes={**SHAPES, "head.weight": (1,)},
    )
    assert [variable.name for variable in result.missing] == ["net.bias"]
    assert sorted(result.leftover) == [f"gone{AVERAGE}", "other"]
    assert result.unnamed == ["head.weight"]


def test_shape_mismatch_is_reported_in_the_files_layout() -> None:
    result = matched({**FILE, "scope/dense/kernel": (3, 7)})
    assert [str(wrong) for wrong in result.wrong_shape] == [
        "scope/dense/kernel 3x7 for net.weight, which needs 3x5"
    ]
    assert placed(result) == {"net.bias": ("scope/dense/bias", "")}


def test_average_with_another_shape_is_reported() -> None:
    other = f"scope/dense/bias{AVERAGE}"
    result = matched({**FILE, other: (6,)})
    assert [wrong.source for wrong in result.wrong_shape] == [other]


@pytest.mark.parametrize(
    "name",
    [
        "global_step",
        "train/global_step",
        "scope/dense/kernel/Adam",
        "scope/dense/kernel/Adam_1",
        "train/scope/dense/kernel/Adam_3",
        "scope/dense/kernel/AdamOptimizer_1",
        "scope/dense/kernel/Momentum",
        "scope/dense/bias/adam_m",
        "scope/dense/bias/lamb_v",
        "beta1_power",
        "train/beta2_power_1",
        "loss_scale/good_steps",
        "_CHECKPOINTABLE_OBJECT_GRAPH",
    ],
)
def test_training_slots_and_counters_are_not_weights(name: str) -> None:
    result = matched({**FILE, name: ()})
    assert result.ignored == [name]
    assert is_whole(result)


def test_renamings_are_applied_in_turn_until_the_name_is_found() -> None:
    names = TfNames(
        variables=dense_variables("scope/dense", "net"),
        renamings=((r"^old/", "scope/"), (r"/fc/", "/dense/"), (r"dense", "never")),
        ignored=(r"^copy/",),
    )
    result = matched(
        {"old/fc/kernel": (3, 5), f"old/fc/kernel{AVERAGE}": (3, 5), "scope/fc/bias": (5,)}
        | {"copy/scope/fc/bias": (5,)},
        names=names,
    )
    assert placed(result) == {
        "net.weight": ("old/fc/kernel", f"old/fc/kernel{AVERAGE}"),
        "net.bias": ("scope/fc/bias", ""),
    }
    assert result.ignored == ["copy/scope/fc/bias"]
    assert is_whole(result)


def test_exact_name_takes_precedence_over_a_renamed_one() -> None:
    names = TfNames(
        variables=dense_variables("scope/dense", "net"), renamings=((r"^a_copy/", "scope/"),)
    )
    result = matched({**FILE, "a_copy/dense/bias": (5,)}, names=names)
    assert placed(result)["net.bias"] == ("scope/dense/bias", "")
    assert result.leftover == ["a_copy/dense/bias"]


def test_tensorflow_shape_is_computed_without_allocation() -> None:
    huge = 1 << 40
    kernel = TfVariable(tf_name="k", name="k", layout=ConvolutionKernel())
    assert tensorflow_shape(kernel, (huge, 2, 3, 4)) == (3, 4, 2, huge)
    flat = DenseKernelAfterFlatten(height=2, width=3, channels=4)
    assert tensorflow_shape(TfVariable(tf_name="k", name="k", layout=flat), (7, 24)) == (24, 7)
    plain = TfVariable(tf_name="k", name="k", layout=Unchanged())
    assert tensorflow_shape(plain, ()) == ()


def test_lone_averages_and_the_shapes_under_both_names_are_checked() -> None:
    names = TfNames(variables=dense_variables("scope/dense", "net"), averages="swapped")
    average = f"scope/dense/bias{AVERAGE}"
    # Only one of both names: swapped or not, it is the value itself.
    result = matched({**FILE, average: (6,)}, names=names)
    assert [(wrong.source, wrong.found, wrong.needed) for wrong in result.wrong_shape] == [
        (average, (6,), (5,))
    ]
    lone = matched({"scope/dense/kernel": (3, 5), average: (5,)}, names=names)
    assert [variable.name for variable in lone.missing] == ["net.bias"]
    assert lone.leftover == [average]
    assert not lone.has_averages


def test_names_that_only_resemble_slots_are_unmatched() -> None:
    """Each name is that of a slot or a counter but for one place."""
    names = [
        "my_global_step",
        "global_step/x",
        "Adam",
        "k/Adam_x",
        "k/adam_w",
        "beta3_power",
        "beta1_powers",
        "xbeta1_power",
        "my_loss_scale",
        "loss_scales",
        "a/_CHECKPOINTABLE_OBJECT_GRAPH",
        "save_counter",
    ]
    result = matched({**FILE, **dict.fromkeys(names, ()), "a/save_counter/x": ()})
    assert sorted(result.leftover) == sorted([*names, "a/save_counter/x"])
    assert not result.ignored
    known = ["k/RMSProp_1", "k/Adagrad", "k/Ftrl_12", "b/bad_steps", "save_counter/.ATTRIBUTES"]
    assert sorted(matched({**FILE, **dict.fromkeys(known, ())}).ignored) == sorted(known)


def test_only_batch_counters_need_no_name() -> None:
    shapes = {**SHAPES, "num_batches_tracked": (), "x.num_batches_tracked.y": (), "head": (2,)}
    assert matched(FILE, shapes=shapes).unnamed == [
        "num_batches_tracked",
        "x.num_batches_tracked.y",
        "head",
    ]


def test_first_by_name_of_two_candidates_is_used() -> None:
    names = TfNames(
        variables=dense_variables("scope/dense", "net"), renamings=((r"^[ab]/", "scope/"),)
    )
    file = {"b/dense/kernel": (3, 5), "a/dense/kernel": (3, 5), "scope/dense/bias": (5,)}
    result = matched(file, names=names)
    assert placed(result)["net.weight"] == ("a/dense/kernel", "")
    assert result.leftover == ["b/dense/kernel"]
