"""Sources of Python 2 made readable for Python 3."""
