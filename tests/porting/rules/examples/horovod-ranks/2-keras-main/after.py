import os


def main():
    print(int(os.getenv("DEVICE_ID", "0")))
