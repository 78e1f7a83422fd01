class Denoiser(object):
    pass

denoiser = Denoiser()
denoiser.train(data, noisy)
