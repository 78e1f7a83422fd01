"""Non-finite values: their origin, and how close other values are to overflowing."""
