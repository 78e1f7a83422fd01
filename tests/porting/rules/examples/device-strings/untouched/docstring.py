'cuda'
import torch
