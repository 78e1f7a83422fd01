import os
import tensorflow as tf

os.environ.setdefault("ASCEND_DEVICE_ID", str(args.gpu))
