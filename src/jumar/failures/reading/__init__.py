"""Reads logs of any launcher and library as streams."""
