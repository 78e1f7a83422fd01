"""`python -m tests.npu_standin.run train ...`: the command jumar with the stand-in installed."""

from tests.npu_standin import install

if __name__ == "__main__":
    install()
    from jumar.cli.main import run

    run()
