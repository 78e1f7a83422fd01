import requests

sess = requests.Session()
