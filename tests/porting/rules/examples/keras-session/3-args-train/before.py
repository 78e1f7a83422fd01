import keras

def train(args):
    """Train."""
    model = keras.models.load_model(args.path)
    history = model.fit_generator(batches)
    return history

if __name__ == '__main__':
    train(parse())
