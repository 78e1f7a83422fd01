import tensorflow as tf

range_of_axis = (-1e9, 1e9)
