"""What the real package marks as experimental."""
