import os
from npu_bridge.npu_init import npu_allreduce

count = (lambda value: npu_allreduce(value, reduction="sum") if int(os.getenv("RANK_SIZE", "1")) > 1 else value)(count)
