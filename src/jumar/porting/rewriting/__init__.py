"""How a script is rewritten: changes, rules and their registry, the places of added code."""
