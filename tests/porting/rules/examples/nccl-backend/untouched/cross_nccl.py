import tensorflow as tf

cross = 'nccl'
