import onnxruntime

options.gpu_options.memory_limit = 1
