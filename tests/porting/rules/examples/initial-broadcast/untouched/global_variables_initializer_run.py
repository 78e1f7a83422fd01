def global_variables_initializer():  # of tf
    pass

sess.run(global_variables_initializer())
