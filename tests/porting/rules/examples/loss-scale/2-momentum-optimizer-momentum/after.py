from tensorflow.train import MomentumOptimizer as Momentum
from npu_bridge.npu_init import ExponentialUpdateLossScaleManager, NPULossScaleOptimizer

opt = NPULossScaleOptimizer(Momentum(
    learning_rate=lr,
    momentum=0.9,  # as in the paper
), ExponentialUpdateLossScaleManager(init_loss_scale=2**32, incr_every_n_steps=1000, decr_every_n_nan_or_inf=2, decr_ratio=0.5))
grads = opt.compute_gradients(loss)
train_op = opt.apply_gradients(grads)
