class DataParallel:
    pass

DataParallel()
