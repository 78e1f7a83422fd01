import os
import torch

os.environ['ASCEND_RT_VISIBLE_DEVICES'] = '0,1'
os.environ.setdefault("ASCEND_LAUNCH_BLOCKING", "1")
