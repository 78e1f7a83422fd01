import torch

def f():
    '''cuda'''
