import os
from npu_bridge.npu_init import hccl_ops

everything = (lambda value: hccl_ops.allgather(value, int(os.getenv("RANK_SIZE", "1"))) if int(os.getenv("RANK_SIZE", "1")) > 1 else value)(rows)
seed = (lambda value: hccl_ops.broadcast([value], 0)[0] if int(os.getenv("RANK_SIZE", "1")) > 1 else value)(seed)
