import os
import torch

os.environ['MASTER_ADDR'] = 'localhost'
