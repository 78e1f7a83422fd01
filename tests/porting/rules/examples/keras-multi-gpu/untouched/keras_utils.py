import keras

keras.utils.plot_model(model)
