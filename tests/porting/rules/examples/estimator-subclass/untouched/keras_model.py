import tensorflow as tf

class Mine(tf.keras.Model):
    def __init__(self, config):
        super().__init__(config=config)
