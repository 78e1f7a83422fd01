"""BERT and NEZHA: encoder, heads, and their names in TensorFlow checkpoints."""
