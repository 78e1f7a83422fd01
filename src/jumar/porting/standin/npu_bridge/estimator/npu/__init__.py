"""The parts of npu_bridge that training scripts use."""
