from keras import backend as K

for i in range(3):
    K.clear_session()
    build(i)
