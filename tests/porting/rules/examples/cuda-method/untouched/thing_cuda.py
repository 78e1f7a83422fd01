import tensorflow as tf

thing.cuda()
