"""Which op types must stay in float32: ranked by single passes, then searched by trainings."""
