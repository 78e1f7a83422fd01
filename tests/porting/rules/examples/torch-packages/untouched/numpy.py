import numpy
import torch
