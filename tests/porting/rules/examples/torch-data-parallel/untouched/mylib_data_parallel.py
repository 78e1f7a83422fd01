from mylib import DataParallel

model = DataParallel(model)
