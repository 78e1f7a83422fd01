import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument('--device', default='cuda', help='cuda or cpu')
