"""Trees of files: walking, porting in parallel, writing, and additions."""
