import tensorflow as tf

device = 'cuda:0'
