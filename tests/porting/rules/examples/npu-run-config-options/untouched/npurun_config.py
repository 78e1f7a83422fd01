from mine import NPURunConfig

rc = NPURunConfig()
