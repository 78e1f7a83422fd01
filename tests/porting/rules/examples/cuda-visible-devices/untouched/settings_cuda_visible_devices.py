import tensorflow as tf

settings = {'CUDA_VISIBLE_DEVICES': '1'}
