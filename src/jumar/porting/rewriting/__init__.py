"""How a script is rewritten: changes, rules and their registry, and where code is added."""
