from mylib import MirroredStrategy  # not tensorflow

MirroredStrategy()
