from mylib import bfloat16_scope  # not tensorflow

bfloat16_scope()
