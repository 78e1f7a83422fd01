import mine as K

K.clear_session()
