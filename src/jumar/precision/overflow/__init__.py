"""Non-finite values: where they come from, and how far the others are from them."""
