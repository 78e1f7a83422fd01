"""Which parameters of BERT weight decay applies to."""


def decays(name: str) -> bool:
    """All but biases and norms, by name, as in the originals' optimizers."""
    return "LayerNorm" not in name and not name.endswith("bias")
