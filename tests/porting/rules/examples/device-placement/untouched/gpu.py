import tensorflow as tf

print('/gpu:0')
