from .cuda import amp
