import imageio
import numpy as np
import scipy.signal
from sklearn import model_selection
from skimage.metrics import structural_similarity

image = np.pad(imageio.imread(path), 1)
