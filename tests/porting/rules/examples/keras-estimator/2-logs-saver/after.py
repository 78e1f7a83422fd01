from tensorflow.keras.estimator import model_to_estimator
from npu_bridge.npu_init import npu_run_config_init

estimator = model_to_estimator(model, None, None, logs, npu_run_config_init(run_config=config), 'saver')
