"""What a training script uses of npu_bridge."""
