class torch:
    cuda = None

print(torch.cuda)
