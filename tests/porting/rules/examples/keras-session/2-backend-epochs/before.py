from keras.models import Sequential
from keras import backend as K

epochs = 3
model = Sequential()
model.fit(x, y, epochs=epochs)
