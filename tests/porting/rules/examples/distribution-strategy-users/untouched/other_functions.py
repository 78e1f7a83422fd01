import tensorflow as tf


class Strategy:
    pass


def strategy_for(gpus):
    return Strategy()


strategy = strategy_for(8)
