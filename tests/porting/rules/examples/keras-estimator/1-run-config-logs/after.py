import tensorflow as tf
import os
from npu_bridge.npu_init import NPURunConfig, keras_to_npu

rc = NPURunConfig(model_dir=logs, tf_random_seed=None, save_summary_steps=0, save_checkpoints_steps=50)
os.environ.setdefault("JOB_ID", "10086")
estimator = keras_to_npu.model_to_npu_estimator(model, config=rc)
