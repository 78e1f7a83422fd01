"""Scores of text tasks, computed as in the originals: entities, labels, answers."""
