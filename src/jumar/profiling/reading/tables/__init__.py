"""Tables in CSV files."""
