import os
import tensorflow as tf

os.environ['CUDA_VISIBLE_DEVICES'] = ''
count = len(os.environ['CUDA_VISIBLE_DEVICES'])
