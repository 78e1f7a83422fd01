from tensorflow import ConfigProto, GPUOptions

def config():
    return ConfigProto(allow_soft_placement=True,
                       gpu_options=GPUOptions(allow_growth=True))
