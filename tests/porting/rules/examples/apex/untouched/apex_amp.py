from .apex import amp
