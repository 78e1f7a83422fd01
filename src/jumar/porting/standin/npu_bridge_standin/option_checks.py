"""Predicts the reaction of the real adapter to the `NpuOptimizer` blocks of a session.

A block is a dictionary from key to a pair: the field that was set (`b`, `i`, `s`, another, or None)
and its value, with bytes already decoded.
"""

import difflib
import os
import re
from collections import namedtuple
from pathlib import Path

from npu_bridge_standin.option_table import MIXED_MODES, MIXED_MODES_V2, NOT_READ, OPTIONS

Problem = namedtuple("Problem", ["key", "value", "text", "refused"])
"""`refused`: the real adapter ends the session or process. Otherwise, it ignores the problem."""

ZERO = {"b": False, "i": 0, "s": ""}
FIELD_NAMES = {"b": ".b (a bool)", "i": ".i (an int)", "s": ".s (bytes)"}
DUMP_STEP_GROUPS = 100


def check_blocks(blocks, environment=None):
    """Return the problems in the blocks of a session, in the order of the adapter's checks."""
    state = {"enable_dump": False, "enable_dump_debug": False, "profiling_mode": False}
    environment = os.environ if environment is None else environment
    problems = []
    for block in blocks:
        problems += _silent_problems(block)
        values = read_values(block)
        state.update((key, values[key]) for key in state if key in values)
        problems += _value_problems(block, values)
        problems += _dump_problems(values, state)
        problems += _tuning_problems(values, environment)
        problems += _combination_problems(values)
        problems += _dynamic_problems(values)
        problems += _unread_problems({**state, **values}, values)
    return problems


def read_values(block):
    """Return the values that the adapter reads; a value in the wrong field is read as zero."""
    values = {}
    for key, (field, value) in block.items():
        if key in OPTIONS:
            expected_field = OPTIONS[key]["field"]
            values[key] = value if field == expected_field else ZERO[expected_field]
    return values


def nearest_key(key):
    """Return the known key closest to a misspelt one, or None."""
    folded = {known.lower(): known for known in OPTIONS}
    close = difflib.get_close_matches(key.lower(), list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def _refused(key, value, why):
    return Problem(key, value, "{} = {!r}: {}".format(key, value, why), True)


def _ignored(key, value, why):
    return Problem(key, value, "{} = {!r}: {}".format(key, value, why), False)


def _silent_problems(block):
    for key, (field, value) in block.items():
        if key in NOT_READ:
            yield _ignored(key, value, "has no effect, it is " + NOT_READ[key])
        elif key not in OPTIONS:
            close = nearest_key(key)
            hint = "; did you mean '{}'?".format(close) if close else ""
            yield _ignored(key, value, "no such option, it has no effect" + hint)
        elif field != OPTIONS[key]["field"] and key != "jit_compile":
            expected_field = OPTIONS[key]["field"]
            state = "not set" if field is None else "set in ." + field
            yield _ignored(
                key,
                value,
                "it is {}, but read from {}, so it counts as {!r}".format(
                    state, FIELD_NAMES[expected_field], ZERO[expected_field]
                ),
            )


def _value_problems(block, values):
    if "jit_compile" in block and block["jit_compile"][0] != "s":
        yield _refused("jit_compile", block["jit_compile"][1], "must be set in .s (bytes)")
    checked_elsewhere = {"dump_mode", "dump_debug_mode", "dynamic_graph_execute_mode", "aoe_mode"}
    for key, value in values.items():
        allowed = OPTIONS[key].get("allowed")
        if allowed and key not in checked_elsewhere and value not in allowed:
            if key == "jit_compile" and block[key][0] != "s":
                continue
            yield _not_allowed(key, value)
    for key, minimum in (
        ("iterations_per_loop", 1),
        ("task_index", 0),
        ("session_device_id", 0),
    ):
        if values.get(key, minimum) < minimum:
            yield _refused(key, values[key], "must be {} or more".format(minimum))
    if values.get("graph_run_mode", 1) > 1:
        yield _refused("graph_run_mode", values["graph_run_mode"], "must be 0 or 1")
    if not 0 <= values.get("local_rank_id", 0) <= 7:
        yield _refused("local_rank_id", values["local_rank_id"], "must be 0 to 7")
    devices = values.get("local_device_list")
    if devices is not None and not re.fullmatch(r"\d+(,\d+)*", devices):
        yield _refused("local_device_list", devices, "write it like '1,2,3'")


def _not_allowed(key, value):
    allowed = OPTIONS[key]["allowed"]
    close = difflib.get_close_matches(str(value), [str(item) for item in allowed], n=1)
    hint = "did you mean '{}'? ".format(close[0]) if close else ""
    return _refused(
        key, value, "{}allowed values are {}".format(hint, ", ".join(str(item) for item in allowed))
    )


def _dump_problems(values, state):
    if state["enable_dump"] or state["enable_dump_debug"]:
        if "dump_path" not in values:
            key = "enable_dump" if state["enable_dump"] else "enable_dump_debug"
            yield _refused(key, True, "dump_path must be set in the same block")
        else:
            yield from _path_problems("dump_path", values["dump_path"])
    if state["enable_dump"]:
        if "dump_step" in values:
            yield from _dump_step_problems(values["dump_step"])
        if values.get("dump_mode", "all") not in OPTIONS["dump_mode"]["allowed"]:
            yield _not_allowed("dump_mode", values["dump_mode"])
    debug_mode = values.get("dump_debug_mode", "all")
    if state["enable_dump_debug"] and debug_mode not in OPTIONS["dump_debug_mode"]["allowed"]:
        yield _not_allowed("dump_debug_mode", debug_mode)


def _dump_step_problems(text):
    groups = text.split("|") if text else []
    if len(groups) > DUMP_STEP_GROUPS:
        yield _refused("dump_step", text, "at most {} groups".format(DUMP_STEP_GROUPS))
    for group in groups:
        parts = group.split("-")
        if len(parts) > 2 or not all(part.isdigit() for part in parts):
            yield _refused("dump_step", text, "write it like '0|5|10-20'")
            return
        if len(parts) == 2 and int(parts[0]) >= int(parts[1]):
            yield _refused("dump_step", text, "'{}' is not ascending".format(group))
            return


def _path_problems(key, path):
    if not Path(path).is_dir():
        yield _refused(key, path, "the folder does not exist")
    elif not os.access(path, os.R_OK | os.W_OK):
        yield _refused(key, path, "the folder cannot be read and written")


def _tuning_problems(values, environment):
    mode = values.get("aoe_mode")
    if mode == "":
        yield _ignored("aoe_mode", mode, "an empty value only leaves a line in the log")
    if mode is None:
        mode = environment.get("AOE_MODE", "")
    if mode:
        if mode not in OPTIONS["aoe_mode"]["allowed"]:
            yield _not_allowed("aoe_mode", mode)
        yield from _path_problems("work_path", values.get("work_path", "./"))


def _unread_problems(switches, values):
    for key, value in values.items():
        needed = OPTIONS[key].get("read_with", ())
        read = not needed or any(switches.get(switch) for switch in needed)
        # NPUEstimator always writes some of the defaults, which changes nothing.
        if not read and value != OPTIONS[key]["default"]:
            yield _ignored(key, value, "only read if {} is true".format(" or ".join(needed)))


def _combination_problems(values):
    precision, precision_v2 = values.get("precision_mode"), values.get("precision_mode_v2")
    if "modify_mixlist" in values:
        # The adapter reads precision_mode_v2 only if the block has no precision_mode.
        if precision is not None:
            mixed = precision in MIXED_MODES
        else:
            mixed = precision_v2 in MIXED_MODES_V2
        if not mixed:
            yield _refused(
                "modify_mixlist",
                values["modify_mixlist"],
                "only with a mixed-precision mode in the same block: precision_mode {} "
                "or precision_mode_v2 {}".format(", ".join(MIXED_MODES), ", ".join(MIXED_MODES_V2)),
            )
    if precision is not None and precision_v2 is not None:
        yield _refused("precision_mode_v2", precision_v2, "not together with precision_mode")
    if "optypelist_for_implmode" in values and "op_select_implmode" not in values:
        yield _refused(
            "optypelist_for_implmode",
            values["optypelist_for_implmode"],
            "op_select_implmode must also be set",
        )
    if "enable_compress_weight" in values and "compress_weight_conf" in values:
        yield _refused(
            "compress_weight_conf",
            values["compress_weight_conf"],
            "not together with enable_compress_weight",
        )


def _dynamic_problems(values):
    together = ("input_shape", "dynamic_dims", "dynamic_node_type")
    present = [key for key in together if key in values]
    if present and len(present) < len(together):
        yield _refused(
            present[0], values[present[0]], "set {} together".format(", ".join(together))
        )
    elif present:
        shapes, dims = values["input_shape"], values["dynamic_dims"]
        if not all(re.fullmatch(r"\w+:-?\d+(,-?\d+)*", part) for part in _parts(shapes)):
            yield _refused("input_shape", shapes, "write it like 'data:1,-1,3;label:1,-1'")
        if not all(re.fullmatch(r"\d+(,\d+)*", part) for part in _parts(dims)):
            yield _refused("dynamic_dims", dims, "write it like '20,20;40,40'")
        if values["dynamic_node_type"] not in (0, 1):
            yield _refused("dynamic_node_type", values["dynamic_node_type"], "must be 0 or 1")
        if values.get("mix_compile_mode"):
            yield _refused("input_shape", shapes, "not together with mix_compile_mode")
    mode = values.get("dynamic_graph_execute_mode")
    if values.get("dynamic_input"):
        if mode is not None and mode not in OPTIONS["dynamic_graph_execute_mode"]["allowed"]:
            yield _not_allowed("dynamic_graph_execute_mode", mode)
        if mode == "lazy_recompile" and values.get("iterations_per_loop", 1) > 1:
            yield _refused(
                "iterations_per_loop",
                values["iterations_per_loop"],
                "must be 1 if dynamic_graph_execute_mode is lazy_recompile",
            )


def _parts(text):
    return text.rstrip(";").split(";") if text else [""]
