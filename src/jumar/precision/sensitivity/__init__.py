"""How far loss and gradients move when the output of one op is rounded to a low dtype."""
