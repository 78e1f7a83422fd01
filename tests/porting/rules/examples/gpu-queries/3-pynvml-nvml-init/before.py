import tensorflow as tf
import pynvml

pynvml.nvmlInit()
