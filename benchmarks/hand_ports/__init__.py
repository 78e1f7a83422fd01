"""A port held against one that people made: what they changed, and what became of each change."""
