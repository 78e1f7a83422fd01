import torch

if args.cuda:
    print('on the GPU')
