from .triton import kernel
