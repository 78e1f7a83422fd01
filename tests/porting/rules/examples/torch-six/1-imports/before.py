import torch
from torch._six import string_classes
