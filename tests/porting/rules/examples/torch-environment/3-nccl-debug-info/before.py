import os
import torch

os.environ['NCCL_DEBUG'] = 'INFO'
