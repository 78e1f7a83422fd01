import os
import tensorflow as tf

os.environ['CUDA_VISIBLE_DEVICES'] = '0'
