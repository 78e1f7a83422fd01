import subprocess
import torch

subprocess.run('CUDA_VISIBLE_DEVICES=0 python train.py', shell=True)
