import numpy as np

device = 'cuda'
