"""Tests that run where the stand-in is installed: in the process that test_standin.py starts."""
