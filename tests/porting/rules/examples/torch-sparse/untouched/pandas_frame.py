import pandas

frame.to_sparse()
