"""Self-contained HTML pages: templates, and hashes for their content security policy."""

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template


def page_source(package: str, name: str) -> str:
    """Return the text of a file in a package: a style sheet, a script or a template."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


@lru_cache
def page_template(package: str, name: str = "page.html.jinja") -> Template:
    """Return a template that escapes all text, and raises an error if a value is missing."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(page_source(package, name))


def policy_hash(text: str) -> str:
    """Return the hash that allows a style or script in a page's content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
