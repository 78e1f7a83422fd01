from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.stores.location import parse


@pytest.mark.parametrize(
    ("url", "bucket", "key"),
    [
        ("s3://bucket/a/b", "bucket", "a/b"),
        ("obs://bucket/a/", "bucket", "a"),
        ("s3://bucket", "bucket", ""),
        (str(Path("s3://bucket/a")), "bucket", "a"),
    ],
)
def test_url_names_bucket_and_key_even_after_path_conversion(
    url: str, bucket: str, key: str
) -> None:
    location = parse(url)
    assert (location.bucket, location.key) == (bucket, key)
    assert parse(str(location)) == location


@pytest.mark.parametrize("url", ["s3://bucket/a//b", "s3://bucket/../a", "gs://bucket/a", "s3:a"])
def test_urls_without_an_object_are_refused(url: str) -> None:
    with pytest.raises(UserError):
        parse(url)


def test_credentials_in_a_url_are_refused_without_showing_them() -> None:
    with pytest.raises(UserError, match="must not contain credentials") as raised:
        parse("s3://AKIA:hidden@bucket/a")
    assert "hidden" not in str(raised.value)
    assert "AKIA" not in str(raised.value)
