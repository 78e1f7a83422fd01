from tensorflow.nn import dropout as drop

x = drop(drop(x, keep_prob=k, seed=7), rate=a - b, name='last')
