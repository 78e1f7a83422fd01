import os
import tensorflow as tf

print(int(os.getenv('RANK_SIZE', '1')))
