hvd = None
if hvd:
    print('tf')
