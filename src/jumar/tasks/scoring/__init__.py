"""Scores of text tasks as their originals compute them: entities, labels, answers."""
