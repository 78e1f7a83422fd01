from sklearn.svm import SVC

model = SVC()
model.fit(x, y)
