"""`jumar port check`: a ported script on a CPU, stage by stage, beside its original."""
