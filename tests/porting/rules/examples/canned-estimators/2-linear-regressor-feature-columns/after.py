from tensorflow.estimator import LinearRegressor as L
from npu_bridge.npu_init import npu_run_config_init

model = L(feature_columns=columns, config=npu_run_config_init())
