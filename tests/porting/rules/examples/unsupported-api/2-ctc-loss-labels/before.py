from tensorflow.nn import ctc_loss

loss = ctc_loss(labels, logits, lengths)
