import tensorflow as tf
import os
from npu_bridge.npu_init import NPUEstimator, NPURunConfig

rc = NPURunConfig(model_dir=logs, tf_random_seed=1, save_summary_steps=10,
                            save_checkpoints_steps=50)
os.environ.setdefault("JOB_ID", "10086")
estimator = NPUEstimator(model_fn, config=rc)
