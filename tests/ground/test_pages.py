"""Pages escape what they show, and admit only their own script."""

import pytest
from jinja2 import UndefinedError

from jumar.ground.pages import page_source, page_template, policy_hash


def test_policy_hash_is_the_base64_of_the_sha256() -> None:
    # printf x | openssl dgst -sha256 -binary | base64
    assert policy_hash("x") == "sha256-LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE="


def test_a_template_is_the_source_of_its_page() -> None:
    package = "jumar.precision.sensitivity.page"
    assert page_source(package, "page.html.jinja").startswith("<!")
    with pytest.raises(UndefinedError):
        page_template(package).render()
