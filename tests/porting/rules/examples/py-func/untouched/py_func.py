def py_func(f, x):  # tf
    return f(x)

py_func(print, 1)
