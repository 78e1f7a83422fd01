from tensorflow.estimator import Estimator, RunConfig

def config():
    return RunConfig(save_summary_steps=0, save_checkpoints_secs=60)

Estimator(model_fn, config=config().replace(model_dir=logs))
