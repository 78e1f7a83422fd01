import tensorflow as tf
from npu_bridge.npu_init import close_session, set_keras_session_npu_config

def main():
    npu_keras_session = set_keras_session_npu_config()
    model = tf.keras.Sequential()
    model.compile('sgd', 'mse')
    model.fit(x, y)
    close_session(npu_keras_session)

if __name__ == '__main__':
    main()
