import numpy as np
from keras.datasets import cifar10
from keras.models import load_model

(x, y), (x_test, y_test) = cifar10.load_data()
model = load_model("model.h5")
model.fit(x, y, batch_size=100, validation_data=(x_test, y_test))
model.fit(np.zeros((320, 8)), np.zeros(320), validation_split=0.5, batch_size=16)
model.evaluate(x_test, y_test, batch_size=len(x_test))
