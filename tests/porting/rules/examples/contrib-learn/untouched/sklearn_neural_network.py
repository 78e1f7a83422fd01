from sklearn.neural_network import MLPClassifier

MLPClassifier()
