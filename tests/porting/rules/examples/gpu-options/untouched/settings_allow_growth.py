import tensorflow as tf

settings.allow_growth = True
