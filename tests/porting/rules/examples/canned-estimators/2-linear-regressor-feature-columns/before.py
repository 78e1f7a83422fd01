from tensorflow.estimator import LinearRegressor as L

model = L(feature_columns=columns)
