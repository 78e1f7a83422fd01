import tensorflow as tf

model = tf.keras.Sequential([layer])
model.compile(tf.keras.optimizers.Adam(0.1), 'mse')
other = tf.keras.Sequential([layer])
other.compile(optimizer=tf.train.AdamOptimizer(0.1), loss='mse')
