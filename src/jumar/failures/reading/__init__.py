"""Logs of any launcher and library, read as streams."""
