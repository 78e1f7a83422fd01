import argparse
import torch
import torch_npu

parser = argparse.ArgumentParser()
parser.add_argument('--device', default='npu', help='cuda or cpu')
