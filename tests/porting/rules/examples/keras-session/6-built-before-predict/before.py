from keras.models import load_model


def predict(model):
    print(model.predict(data()))


if __name__ == '__main__':
    model = load_model('a.h5')
    predict(model)
