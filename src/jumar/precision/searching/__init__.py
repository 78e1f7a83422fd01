"""Find the op types that must stay in float32: rank them by single passes, then train."""
