import tensorflow as tf

import os

if int(os.getenv("RANK_SIZE", "1")) > 1:
    pass
shards = int(os.getenv("RANK_SIZE", "1")) if int(os.getenv("RANK_SIZE", "1")) > 1 else 1
