"""Trees of files: walked, ported side by side, written, and what is added to them."""
