from mytorch.cuda import amp
