import mylib
import torch

mylib.cuda()
