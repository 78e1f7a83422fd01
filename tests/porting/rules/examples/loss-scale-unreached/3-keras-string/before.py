from keras.models import Sequential

model = Sequential([layer])
model.compile(optimizer='adam', loss='mse')
