"""Conversion of Python 2 sources so that Python 3 can parse them."""
