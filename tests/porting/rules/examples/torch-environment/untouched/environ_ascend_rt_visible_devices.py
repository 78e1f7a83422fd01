import os
import torch

os.environ['ASCEND_RT_VISIBLE_DEVICES'] = '0'
