import numpy as np

np.linalg.cond(x)
