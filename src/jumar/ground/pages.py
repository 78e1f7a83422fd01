"""Self-contained HTML pages: templates, and the policy by which only their own script runs."""

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template


def page_source(package: str, name: str) -> str:
    """The text of a file in a package: a style, a script or a template."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


@lru_cache
def page_template(package: str, name: str = "page.html.jinja") -> Template:
    """A template that escapes every text, and fails where a value is missing."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(page_source(package, name))


def policy_hash(text: str) -> str:
    """The hash by which a page's content security policy admits a style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
