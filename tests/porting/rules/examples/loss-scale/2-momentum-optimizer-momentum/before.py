from tensorflow.train import MomentumOptimizer as Momentum

opt = Momentum(
    learning_rate=lr,
    momentum=0.9,  # as in the paper
)
grads = opt.compute_gradients(loss)
train_op = opt.apply_gradients(grads)
