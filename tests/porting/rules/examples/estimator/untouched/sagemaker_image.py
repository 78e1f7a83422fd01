import sagemaker

sagemaker.estimator.Estimator(image, role)
