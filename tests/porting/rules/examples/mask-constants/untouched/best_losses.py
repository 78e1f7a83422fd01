import tensorflow as tf

best = -1e9
for loss in losses:
    best = max(best, loss)
