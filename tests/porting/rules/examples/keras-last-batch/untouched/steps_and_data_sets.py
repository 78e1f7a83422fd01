import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.fit(images, labels, steps_per_epoch=100)
model.evaluate(images, labels, steps=10)
model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(32, drop_remainder=True), epochs=2)
model.fit(generator.flow(x, y, batch_size=32), epochs=2)
