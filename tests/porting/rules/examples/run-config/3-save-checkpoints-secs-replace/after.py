from tensorflow.estimator import Estimator, RunConfig
import os
from npu_bridge.npu_init import NPUEstimator, NPURunConfig

def config():
    return NPURunConfig(save_summary_steps=0, save_checkpoints_secs=60, precision_mode="allow_mix_precision", iterations_per_loop=10)

os.environ.setdefault("JOB_ID", "10086")
NPUEstimator(model_fn, config=config().replace(model_dir=logs))
