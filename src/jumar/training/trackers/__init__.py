"""Trackers, which write or send the records of a run, and the choice among them."""
