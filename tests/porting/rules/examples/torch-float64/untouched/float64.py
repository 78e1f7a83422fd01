import numpy as np

x = np.float64(3)
