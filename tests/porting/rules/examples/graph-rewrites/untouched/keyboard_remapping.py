import tensorflow as tf

keyboard.remapping = 1
