switch.global_jit_level = 1
