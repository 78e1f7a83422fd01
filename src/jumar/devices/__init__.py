"""The devices that jumar computes on, one file per kind, and how they are requested."""
