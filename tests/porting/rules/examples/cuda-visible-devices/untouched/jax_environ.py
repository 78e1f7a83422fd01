import os
import jax

os.environ['CUDA_VISIBLE_DEVICES'] = '1'
