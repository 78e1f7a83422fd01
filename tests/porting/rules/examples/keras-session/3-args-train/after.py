import keras
from npu_bridge.npu_init import close_session, set_keras_session_npu_config

def train(args):
    """Train."""
    npu_keras_session = set_keras_session_npu_config()
    keras.backend.set_session(npu_keras_session)
    model = keras.models.load_model(args.path)
    history = model.fit_generator(batches)
    close_session(npu_keras_session)
    return history

if __name__ == '__main__':
    train(parse())
