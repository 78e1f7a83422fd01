class Loader(object):
    def padded_batch(self, n, shapes):  # not tf
        return n

Loader().padded_batch(8, [None])
