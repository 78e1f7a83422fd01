apex = 3
