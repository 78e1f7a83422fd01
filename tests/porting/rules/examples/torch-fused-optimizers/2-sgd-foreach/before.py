from torch import optim

opt = optim.SGD(parameters, lr=0.1, foreach=True)
