"""`jumar port check`: a ported script on a CPU, stage by stage, next to its original."""
