from tensorflow.python.profiler import profile
