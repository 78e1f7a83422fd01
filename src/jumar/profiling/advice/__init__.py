"""Advice: what to change, ranked by the milliseconds a step that it can win; and the gate."""
