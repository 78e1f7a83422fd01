import os
import tensorflow as tf

os.environ['ASCEND_DEVICE_ID'] = '1'
