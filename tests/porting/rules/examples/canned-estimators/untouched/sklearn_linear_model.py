from sklearn.linear_model import LinearRegressor

LinearRegressor(config=1)
