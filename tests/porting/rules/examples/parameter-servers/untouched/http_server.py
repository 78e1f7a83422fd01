from http.server import Server  # tf

Server()
