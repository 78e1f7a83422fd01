from tensorflow.keras.estimator import model_to_estimator

estimator = model_to_estimator(model, None, None, logs, config, 'saver')
