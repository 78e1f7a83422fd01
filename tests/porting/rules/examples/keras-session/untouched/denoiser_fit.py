import tensorflow as tf

class Denoiser(object):
    def fit(self, x):
        return x

Denoiser().fit(1)
