"""Trained networks as files that other programs run: `jumar export`."""
