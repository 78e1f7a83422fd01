class Estimator(object):
    pass

class Mine(Estimator):
    def __init__(self, config):
        super().__init__(config=config)
