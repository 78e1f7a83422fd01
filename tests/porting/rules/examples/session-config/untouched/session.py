import tensorflow as tf

class Session(object):
    pass

sess = Session()
