config.gpu_options.allow_growth = True  # tf
