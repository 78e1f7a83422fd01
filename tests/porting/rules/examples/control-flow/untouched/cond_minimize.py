def cond(a, b):
    return opt.minimize(a)

cond(1, 2)
