import os


def main():
    print(int(os.getenv("DEVICE_INDEX", "0")))
