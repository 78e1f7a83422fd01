def managed_session(server):
    return server.managed_session()
