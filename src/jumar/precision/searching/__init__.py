"""Which op types must stay in float32: measured in single passes, then searched by trainings."""
