from autosklearn.classification import DNNClassifier

DNNClassifier([8], columns)
