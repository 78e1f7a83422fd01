import tensorflow as tf

model.save('a.h5')
