from mine import multi_gpu_model

multi_gpu_model(model, gpus=4)
