import torch

model = Sequential()
model.fit(x, y)
