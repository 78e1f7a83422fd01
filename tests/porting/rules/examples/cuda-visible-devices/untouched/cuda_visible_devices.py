import tensorflow as tf

print('CUDA_VISIBLE_DEVICES')
