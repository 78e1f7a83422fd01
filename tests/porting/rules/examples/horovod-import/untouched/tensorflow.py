import tensorflow as tf

if tf:
    pass
