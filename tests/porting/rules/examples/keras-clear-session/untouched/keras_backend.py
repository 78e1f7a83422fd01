import tensorflow as tf

print(tf.keras.backend.clear_session)
