import keras
from keras.layers import Dense

from .keras import own


def model():
    from keras.models import Sequential

    return Sequential([keras.layers.Input((4,)), own(), Dense(1)])
