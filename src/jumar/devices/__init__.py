"""The devices that jumar computes on, a file a kind, and how they are asked for."""
