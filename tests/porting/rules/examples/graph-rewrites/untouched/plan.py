import tensorflow as tf

plan = Plan(remapping=1, memory_optimization=1)
