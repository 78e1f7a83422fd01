import tensorflow as tf

penalty = tf.gradients(critic(x), [x])[0]
