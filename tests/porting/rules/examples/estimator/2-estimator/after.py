import os
import tensorflow as tf
from npu_bridge.npu_init import NPUEstimator, NPURunConfig

os.environ.setdefault("JOB_ID", "10086")
estimator = NPUEstimator(model_fn=model_fn, config=NPURunConfig(save_summary_steps=100, save_checkpoints_secs=600))
