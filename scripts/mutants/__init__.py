"""Small defects planted by a seed, and whether the tests notice: `make mutants`."""
