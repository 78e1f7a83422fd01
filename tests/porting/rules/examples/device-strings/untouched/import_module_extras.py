import torch

import_module('cuda')
extras = ['cuda', 'docs']
