from tensorflow import Session as S

sess = S('', graph, config)
