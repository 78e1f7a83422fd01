"""`python -m jumar`, which torchrun needs."""

from jumar.cli.main import run

if __name__ == "__main__":
    run()
