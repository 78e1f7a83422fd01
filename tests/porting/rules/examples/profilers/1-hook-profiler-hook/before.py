import tensorflow as tf

hook = tf.train.ProfilerHook(save_steps=100, output_dir=logs)
