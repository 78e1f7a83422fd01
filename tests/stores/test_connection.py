from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.stores.connection import connection, credentials, without_secrets
from jumar.stores.location import parse

OBS, S3 = parse("obs://pictures/a"), parse("s3://pictures/a")


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(("AWS_", "OBS_", "S3_", "HUAWEICLOUD_", "ACCESS_KEY", "SECRET_ACC")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_obs_uses_virtual_hosted_addressing_in_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBS_REGION", "cn-north-4")
    reached = connection(OBS)
    assert reached.endpoint == "https://obs.cn-north-4.myhuaweicloud.com"
    assert reached.is_virtual
    assert reached.endpoint_of("pictures") == ("https://pictures.obs.cn-north-4.myhuaweicloud.com")


def test_obs_endpoint_implies_the_region_and_needs_no_scheme(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OBS_ENDPOINT", "obs.ap-southeast-1.myhuaweicloud.com")
    reached = connection(OBS)
    assert reached.endpoint == "https://obs.ap-southeast-1.myhuaweicloud.com"
    assert reached.region == "ap-southeast-1"


def test_obs_without_endpoint_and_region_says_what_to_set() -> None:
    with pytest.raises(UserError, match="OBS_ENDPOINT"):
        connection(OBS)


@pytest.mark.parametrize(
    "endpoint", ["http://store:9000", "https://10.0.0.1", "http://localhost:1"]
)
@pytest.mark.parametrize("location", [OBS, S3])
def test_plain_and_numbered_endpoints_have_the_bucket_in_the_path(
    endpoint: str, location: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    reached = connection(location)  # pyright: ignore[reportArgumentType]
    assert not reached.is_virtual
    assert reached.endpoint_of("pictures") == endpoint


def test_addressing_style_is_configurable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://store.example")
    assert not connection(S3).is_virtual
    monkeypatch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")
    assert connection(S3).endpoint_of("pictures") == "https://pictures.store.example"


@pytest.mark.parametrize(
    ("scheme", "names"),
    [
        ("obs", ("OBS_ACCESS_KEY_ID", "OBS_SECRET_ACCESS_KEY", "OBS_SECURITY_TOKEN")),
        ("obs", ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SECURITY_TOKEN")),
        ("obs", ("HUAWEICLOUD_SDK_AK", "HUAWEICLOUD_SDK_SK", "HUAWEICLOUD_SDK_SECURITY_TOKEN")),
        ("obs", ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")),
        ("s3", ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")),
    ],
)
def test_credentials_come_from_the_environment(
    scheme: str, names: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in names:
        monkeypatch.setenv(name, f"value of {name}")
    result = credentials(parse(f"{scheme}://pictures"))
    assert (result.key, result.secret, result.token) == tuple(f"value of {name}" for name in names)


def test_token_from_another_variable_pair_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("OBS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token of something else")
    assert credentials(OBS).token is None


def test_credentials_come_from_the_files_of_the_stores_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = one\naws_secret_access_key = two%\n"
        "[lab]\naws_access_key_id = three\naws_secret_access_key = four\n"
    )
    (tmp_path / ".aws" / "config").write_text("[profile lab]\nregion = eu-west-1\n")
    assert (credentials(S3).key, credentials(S3).secret) == ("one", "two%")
    monkeypatch.setenv("AWS_PROFILE", "lab")
    assert credentials(S3).key == "three"
    assert connection(S3).region == "eu-west-1"
    (tmp_path / ".obsutilconfig").write_text(
        "endpoint=obs.cn-east-3.myhuaweicloud.com\nak=five\nsk=six\ntoken=\n"
    )
    assert (credentials(OBS).key, credentials(OBS).token) == ("five", None)
    assert connection(OBS).region == "cn-east-3"


def test_incomplete_or_missing_credentials_say_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="there are no credentials") as raised:
        credentials(OBS)
    assert "OBS_ACCESS_KEY_ID" in raised.value.todo
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very secret")
    with pytest.raises(UserError, match="AWS_ACCESS_KEY_ID is not") as raised:
        credentials(S3)
    assert "very secret" not in str(raised.value)


def test_messages_and_reprs_show_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA12345")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very/secret+key")
    result = credentials(S3)
    assert "secret+key" not in repr(result)
    assert "AKIA12345" not in repr(result)
    text = without_secrets("signed by AKIA12345 with very/secret+key", S3)
    assert text == "signed by *** with ***"


def test_endpoint_with_credentials_is_refused_without_showing_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://someone:hidden@store.example")
    with pytest.raises(UserError, match="must not contain credentials") as raised:
        connection(S3)
    assert "hidden" not in str(raised.value)
