import cProfile

profile = cProfile.Profile()
