"""How a script is rewritten: changes, rules and their registry, where added code stands."""
