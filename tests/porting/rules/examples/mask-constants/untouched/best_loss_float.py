import tensorflow as tf

best_loss = float('-inf')
