"""Advice: what to change, ranked by the milliseconds a step it can save; and the gate."""
