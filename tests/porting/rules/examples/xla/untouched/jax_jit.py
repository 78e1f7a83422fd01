import jax

jax.jit(f)
config.set_jit(True)
