from apex.optimizers import FusedAdam
