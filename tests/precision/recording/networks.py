"""A small network with what can go wrong: batch norm, dropout, attention, ops in place, reuse."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.joint = nn.Linear(size, 3 * size)
        self.norm = nn.LayerNorm(size)

    def forward(self, rows: Tensor, scale: Tensor | None = None) -> tuple[Tensor, Tensor]:
        query, key, value = self.joint(rows).chunk(3, -1)
        weights = (query @ key.transpose(-1, -2) / 4).softmax(-1)
        fused = F.scaled_dot_product_attention(query[:, None], key[:, None], value[:, None])
        mixed = self.norm(rows + weights @ value + fused[:, 0])
        return mixed if scale is None else mixed * scale, weights


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        )
        self.grouped = nn.Conv2d(8, 8, 3, padding=1, groups=4, bias=False)
        self.attention = Attention(8)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(8, 5)

    def forward(self, images: Tensor) -> Tensor:
        features = self.stem(images)
        features = features + self.grouped(features)
        features += 1e-3
        rows = features.flatten(2).transpose(1, 2)
        # One layer twice, the second time with a keyword.
        rows, _ = self.attention(rows)
        rows, weights = self.attention(rows, scale=torch.tensor(0.5))
        features.relu_()
        return self.head(self.dropout(rows.mean(1))) + weights.mean() + features.mean()


def batch(step: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    return (
        torch.randn(4, 3, 6, 6, generator=generator),
        torch.randint(5, (4,), generator=generator),
    )
