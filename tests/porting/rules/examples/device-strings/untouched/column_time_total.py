import torch

column = f"{'cuda' if on else 'cpu'}_time_total"
