import os
import jax as tf

os.environ['XLA_FLAGS'] = '--xla_dump_to=x'
