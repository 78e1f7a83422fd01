class test(object):
    def is_gpu_available(self):
        return 1

test().is_gpu_available()
