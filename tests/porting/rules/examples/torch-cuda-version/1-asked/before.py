import subprocess

import torch

major = int(torch.version.cuda.split('.')[0])
print(torch.version.cuda)
subprocess.check_output(['nvidia-smi', '-L'])
subprocess.run('nvidia-smi -L', shell=True)
