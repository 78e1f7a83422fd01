import mine

mine.ConfigProto(gpu_options=mine.GPUOptions())
