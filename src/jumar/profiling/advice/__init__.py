"""Advice: what to change, ranked by the milliseconds per step it can save; and the gate."""
