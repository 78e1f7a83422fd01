import jax

with jax.device('gpu'):
    pass
