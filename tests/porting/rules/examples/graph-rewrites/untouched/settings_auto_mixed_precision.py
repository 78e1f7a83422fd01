import tensorflow as tf

settings.auto_mixed_precision = True
