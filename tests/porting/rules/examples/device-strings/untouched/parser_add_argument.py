import torch

parser.add_argument('--cuda', action='store_true', help='cuda')
