import tensorflow as tf
import os
from npu_bridge.npu_init import NPUEstimator, NPURunConfig

rc = NPURunConfig(model_dir=logs, save_summary_steps=100, save_checkpoints_secs=600)
os.environ.setdefault("JOB_ID", "10086")
estimator = NPUEstimator(model_fn, config=rc)
