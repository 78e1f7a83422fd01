"""The embedding service: its names, for it has no meaning without parameter servers."""

from npu_bridge_standin.device_ops import device_only

EmbeddingAdamOptimizer = device_only("EmbeddingAdamOptimizer")
EmbeddingAdagradOptimizer = device_only("EmbeddingAdagradOptimizer")
EmbeddingAdamWOptimizer = device_only("EmbeddingAdamWOptimizer")
EmbeddingSgdOptimizer = device_only("EmbeddingSgdOptimizer")
EmbeddingRmspropOptimizer = device_only("EmbeddingRmspropOptimizer")
EmbeddingService = device_only("EmbeddingService")
es_initializer = device_only("es_initializer")
