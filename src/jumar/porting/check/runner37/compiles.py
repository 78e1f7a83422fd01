"""Compile every file in a list; record those that do not compile.

Run as a program: `python compiles.py LIST.json ERRORS.json`. It needs no TensorFlow.
"""

import json
import sys
import warnings


def error_of(path):
    """Return Python 3.7's error for a file, or None."""
    try:
        with open(path, "rb") as file:
            compile(file.read(), path, "exec", dont_inherit=True)
    except SyntaxError as error:
        return {"line": error.lineno or 0, "what": str(error.msg)}
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return {"line": 0, "what": "{}: {}".format(type(error).__name__, error)}
    return None


def main():
    warnings.simplefilter("ignore")
    errors = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        names = json.load(file)
    for path in names:
        error = error_of(path)
        if error:
            errors[path] = error
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(errors, file)


if __name__ == "__main__":
    main()
