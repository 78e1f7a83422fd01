"""Find the origin of non-finite values, and values that are close to overflowing."""
