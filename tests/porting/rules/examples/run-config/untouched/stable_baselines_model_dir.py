from stable_baselines import RunConfig

rc = RunConfig(model_dir='logs')
