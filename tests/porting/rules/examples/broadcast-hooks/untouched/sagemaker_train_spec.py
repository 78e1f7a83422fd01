from sagemaker import TrainSpec

TrainSpec(input_fn)
