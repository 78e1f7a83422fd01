"""Profiles: captured on any device, read from every Ascend release, and explained in milliseconds.

Whatever it came from, a profile is one `Profile` (`profile.py`): the op table and the tables beside
it, with times as integer nanoseconds. Views, advice, comparison and the page read only that.
"""
