from tensorflow import ConfigProto, GPUOptions

def config():
    return ConfigProto(allow_soft_placement=True)
