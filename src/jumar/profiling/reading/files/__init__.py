"""Files, folders and archives, and which of them are profiles."""
