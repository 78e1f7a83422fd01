import tensorflow as tf
import os
from npu_bridge.npu_init import NPUEstimator, NPURunConfig

def train(argv):
    rc = NPURunConfig(model_dir=argv[1], save_summary_steps=0, save_checkpoints_steps=9)
    os.environ.setdefault("JOB_ID", "10086")
    return NPUEstimator(model_fn, None, rc, None, warm_start_from=warm)
