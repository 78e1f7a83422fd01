import numpy as np  # tf

x = np.float64(1)
