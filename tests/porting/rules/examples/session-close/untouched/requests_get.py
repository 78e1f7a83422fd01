import requests

sess = requests.Session()
sess.get(url)
