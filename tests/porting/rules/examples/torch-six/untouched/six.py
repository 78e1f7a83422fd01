import six
import torch
