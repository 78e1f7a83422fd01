"""Estimators from Keras models."""

from tensorflow.python.keras.estimator import model_to_estimator
from tensorflow_estimator.python.estimator import run_config

from npu_bridge.estimator.npu.npu_estimator import NPUEstimator


def model_to_npu_estimator(
    keras_model=None,
    keras_model_path=None,
    custom_objects=None,
    model_dir=None,
    checkpoint_format="saver",
    config=None,
    job_start_file="",
):
    """Create an `NPUEstimator` that trains a compiled Keras model."""
    keras_estimator = model_to_estimator(
        keras_model=keras_model,
        keras_model_path=keras_model_path,
        custom_objects=custom_objects,
        model_dir=model_dir,
        config=run_config.RunConfig(model_dir=model_dir),
        checkpoint_format=checkpoint_format,
    )
    return NPUEstimator(
        model_fn=keras_estimator._model_fn,
        model_dir=model_dir,
        config=config,
        job_start_file=job_start_file,
        warm_start_from=keras_estimator._warm_start_settings,
    )
