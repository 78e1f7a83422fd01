from apex import amp

model, opt = amp.initialize(model, opt, 'O1')
