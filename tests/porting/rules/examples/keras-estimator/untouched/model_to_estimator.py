from mine import model_to_estimator

model_to_estimator(model)
