import torch

path = 'nccl/tests'
name = 'nccl_time'
