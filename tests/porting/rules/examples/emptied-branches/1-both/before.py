import os
import tensorflow as tf

if args.gpu:
    os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'
else:
    os.environ['CUDA_VISIBLE_DEVICES'] = '2,3'

config = tf.ConfigProto()

config.gpu_options.allow_growth = True

if args.grow:
    config.gpu_options.allow_growth = True
elif args.part > 0.5:
    config.gpu_options.per_process_gpu_memory_fraction = 0.5
    config.gpu_options.allow_growth = True

if chosen():
    config.gpu_options.allow_growth = True
sess = tf.Session(config=config)
sess.close()
