"""Parts that the real package marks as experimental."""
