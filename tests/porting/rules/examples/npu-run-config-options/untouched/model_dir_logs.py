from npu_bridge.npu_init import NPURunConfig

rc = NPURunConfig(model_dir=logs)
