from tensorflow.contrib import tpu

opt = (inner)
