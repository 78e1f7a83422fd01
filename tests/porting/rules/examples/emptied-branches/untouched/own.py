import tensorflow as tf

if args.gpu:
    pass
else:
    pass
if args.cpu:
    # later
    config.gpu_options.allow_growth = True
