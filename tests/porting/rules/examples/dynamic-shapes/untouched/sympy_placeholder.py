import sympy

sympy.placeholder([None])
