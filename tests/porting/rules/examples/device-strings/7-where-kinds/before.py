import torch

where = f"{'cuda' if on else 'cpu'}:{rank}"
kinds = ['cpu', 'cuda']
