from scipy.optimize import minimize

minimize(f, x)
