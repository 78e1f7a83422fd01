class RunConfig(object):
    pass

rc = RunConfig()
