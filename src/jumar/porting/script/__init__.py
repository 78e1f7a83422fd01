"""What a script says: its text, scopes, names, what its values hold, the tree around it."""
