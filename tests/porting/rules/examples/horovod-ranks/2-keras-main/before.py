import os
from horovod.tensorflow.keras import local_rank, init


def main():
    init()
    print(local_rank())
