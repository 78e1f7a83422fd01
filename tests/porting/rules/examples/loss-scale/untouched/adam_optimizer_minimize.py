class AdamOptimizer(object):
    pass

AdamOptimizer().minimize(loss)  # of tf
