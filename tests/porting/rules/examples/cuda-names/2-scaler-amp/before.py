import torch as th

scaler = th.cuda.amp.GradScaler(enabled=True)
with th.cuda.amp.autocast(enabled=True):
    pass
