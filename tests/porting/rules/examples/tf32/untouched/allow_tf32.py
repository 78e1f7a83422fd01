allow_tf32 = True

import torch
