import logging
import torch

logging.info('cuda:0 is used')
logging.info('cuda')
