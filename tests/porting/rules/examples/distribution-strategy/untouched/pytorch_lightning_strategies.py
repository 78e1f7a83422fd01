import pytorch_lightning as pl  # tf

pl.strategies.DDPStrategy()
