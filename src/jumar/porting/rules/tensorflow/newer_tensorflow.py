"""Names of TensorFlow 2 that 1.15 does not have."""

import ast

from jumar.porting.rewriting import Case, Text, View, report
from jumar.porting.rules.tensorflow.release_choices import chooses_release

_INSTEAD = {
    "config.get_visible_devices": "tf.config.experimental.get_visible_devices",
    "config.list_logical_devices": "tf.config.experimental.list_logical_devices",
    "config.list_physical_devices": "tf.config.experimental.list_physical_devices",
    "config.set_visible_devices": "tf.config.experimental.set_visible_devices",
    "data.AUTOTUNE": "tf.data.experimental.AUTOTUNE",
    "initializers.GlorotUniform": "tf.initializers.glorot_uniform",
    "initializers.HeNormal": "tf.initializers.he_normal",
    "keras.activations.gelu": "your own function",
    "keras.activations.swish": "tf.nn.swish",
    "keras.callbacks.BackupAndRestore": "tf.keras.callbacks.ModelCheckpoint",
    "keras.callbacks.experimental.BackupAndRestore": "tf.keras.callbacks.ModelCheckpoint",
    "keras.initializers.HeNormal": "tf.keras.initializers.he_normal",
    "keras.layers.MultiHeadAttention": "tf.keras.layers.Attention",
    "keras.layers.Normalization": "tf.keras.layers.Lambda",
    "keras.layers.RandomFlip": "tf.image in tf.data.Dataset.map",
    "keras.layers.StringLookup": "tf.lookup.StaticHashTable",
    "keras.layers.TextVectorization": "tf.lookup.StaticHashTable",
    "keras.layers.experimental.preprocessing": "tf.image in tf.data.Dataset.map",
    "keras.losses.Reduction": "tf.losses.Reduction",
    "keras.mixed_precision.set_global_policy": "the precision mode of the NPU",
    "keras.optimizers.AdamW": "tf.contrib.opt.AdamWOptimizer",
    "keras.preprocessing.image_dataset_from_directory": "tf.data.Dataset.list_files",
    "keras.utils.image_dataset_from_directory": "tf.data.Dataset.list_files",
    "keras.utils.set_random_seed": "tf.set_random_seed",
    "nn.gelu": "your own function",
    "nn.silu": "tf.nn.swish",
    "profiler.experimental": "the profiler of the NPU",
    "random.Generator": "tf.random.uniform or a similar function",
    "random.set_seed": "tf.set_random_seed",
    "summary.create_file_writer": "tf.summary.FileWriter",
    "summary.create_noop_writer": "tf.summary.FileWriter",
    "summary.flush": "tf.summary.FileWriter.flush",
    "summary.record_if": "a session.run without summaries",
    "summary.trace_export": "the profiler of the NPU",
    "summary.trace_on": "the profiler of the NPU",
    "summary.write": "tf.summary.FileWriter.add_summary",
}


def _is_needed(node: ast.AST, view: View) -> bool:
    """Whether a script has no fallback for a name; a bare name is reported at its import."""
    return not isinstance(node, ast.Name) and not chooses_release(node, view)


def _case(name: str, instead: str) -> Case:
    return Case(
        references=(name,),
        imports=(name,),
        when=(_is_needed,),
        en="TensorFlow 1.15 does not have {name}, which is from TensorFlow 2",
        zh="TensorFlow 1.15 没有 {name}，它属于 TensorFlow 2",
        todo_en=f"use {instead}",
        todo_zh=f"改用 {instead}",
        severity="blocking",
    )


report(
    "newer-tensorflow",
    title=Text(
        en="Names of TensorFlow 2 that 1.15 lacks", zh="TensorFlow 1.15 没有的 TensorFlow 2 接口"
    ),
    source="the names of TensorFlow 1.15 and 2.9",
    cases=tuple(_case(f"tensorflow.{name}", instead) for name, instead in _INSTEAD.items()),
)
