settings = dict(fused=True)
