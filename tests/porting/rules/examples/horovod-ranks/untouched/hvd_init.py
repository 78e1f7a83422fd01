class Hvd(object):
    pass

hvd = Hvd()
hvd.init()
print(hvd.rank())
