from sklearn.svm import SVC  # keras

SVC().fit(x, y)
