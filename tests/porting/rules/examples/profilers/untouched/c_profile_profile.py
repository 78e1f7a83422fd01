import cProfile

cProfile.Profile().enable()
