"""How a store is reached: endpoint, region, addressing and credentials.

All of this comes from the environment or the files that the stores' own tools use; none of it can
be set on a command line or in a recipe, where it would end up in logs and recorded runs.
"""

import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from jumar.ground.errors import UserError
from jumar.stores.location import Location

_AWS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_VARIABLES: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "s3": (_AWS,),
    "obs": (
        ("OBS_ACCESS_KEY_ID", "OBS_SECRET_ACCESS_KEY", "OBS_SECURITY_TOKEN"),
        ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SECURITY_TOKEN"),
        ("HUAWEICLOUD_SDK_AK", "HUAWEICLOUD_SDK_SK", "HUAWEICLOUD_SDK_SECURITY_TOKEN"),
        _AWS,
    ),
}
"""Variables for key, secret and token, as named by OBS's SDKs, MoXing, Huawei Cloud's SDK, AWS."""
_ENDPOINTS: Mapping[str, tuple[str, ...]] = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "obs": ("OBS_ENDPOINT", "S3_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
}
_REGIONS: Mapping[str, tuple[str, ...]] = {
    "s3": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "obs": ("OBS_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"),
}
_ROLES = (
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
)
"""Variables from which obstore itself obtains the credentials of a role."""
_OBS_DOMAIN = ".myhuaweicloud.com"
_TRUE = ("1", "true", "yes", "on")


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """An access key with its secret; neither is ever shown."""

    key: str = field(repr=False)
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Connection:
    """How to reach the objects of a bucket.

    Attributes:
        endpoint: The store's URL; empty for AWS itself.
        region: The region that requests are signed for.
        is_virtual: Whether the bucket is a part of the host name.
        is_signed: Whether requests are signed; public buckets need no credentials.
        has_role: Whether obstore gets credentials from a role.
    """

    endpoint: str
    region: str
    is_virtual: bool
    is_signed: bool
    has_role: bool

    def endpoint_of(self, bucket: str) -> str:
        """Return the URL for obstore, with the bucket if it is part of the host name."""
        if not (self.is_virtual and self.endpoint):
            return self.endpoint
        scheme, _, host = self.endpoint.partition("://")
        return self.endpoint if host.startswith(f"{bucket}.") else f"{scheme}://{bucket}.{host}"


def connection(location: Location) -> Connection:
    """Return how to reach a location's bucket, as set by the environment and the usual files.

    Raises:
        UserError: Neither endpoint nor region of an `obs://` path is known, or the endpoint is
            invalid.
    """
    values = _files(location.scheme)
    region = _first(_REGIONS[location.scheme]) or values.get("region", "")
    endpoint = _first(_ENDPOINTS[location.scheme]) or values.get("endpoint_url", "")
    if not endpoint and location.scheme == "obs":
        if not region:
            raise UserError(
                "the store's endpoint is not known",
                where=str(location),
                todo="Set OBS_ENDPOINT, such as https://obs.cn-north-4.myhuaweicloud.com, "
                "or OBS_REGION.",
            )
        endpoint = f"https://obs.{region}{_OBS_DOMAIN}"
    endpoint = _with_scheme(endpoint)
    host = urlsplit(endpoint).hostname or ""
    if endpoint and not host:
        raise UserError(
            "the store's endpoint is not a URL",
            where=" or ".join(_ENDPOINTS[location.scheme]),
            todo="Write it as https://HOST or http://HOST:PORT.",
        )
    if "@" in urlsplit(endpoint).netloc:
        raise UserError(
            "the store's endpoint must not contain credentials",
            where=" or ".join(_ENDPOINTS[location.scheme]),
            todo=f"Set {' and '.join(_VARIABLES[location.scheme][0][:2])} instead.",
        )
    if not region and host.endswith(_OBS_DOMAIN):
        region = host.removesuffix(_OBS_DOMAIN).rpartition(".")[2]
    addressing = os.environ.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower()
    return Connection(
        endpoint=endpoint.rstrip("/"),
        region=region or "us-east-1",
        is_virtual=addressing in _TRUE
        if addressing
        else _is_virtual(location.scheme, endpoint, host),
        is_signed=os.environ.get("AWS_SKIP_SIGNATURE", "").lower() not in _TRUE,
        has_role=any(os.environ.get(name) for name in _ROLES)
        or os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "false",
    )


def credentials(location: Location) -> Credentials:
    """Read the credentials for a location, anew at each call, since temporary ones are renewed.

    Raises:
        UserError: There are none, or they are incomplete.
    """
    for key, secret, token in _VARIABLES[location.scheme]:
        values = os.environ.get(key, ""), os.environ.get(secret, "")
        if all(values):
            return Credentials(key=values[0], secret=values[1], token=os.environ.get(token) or None)
        if any(values):
            set_name, missing_name = (key, secret) if values[0] else (secret, key)
            raise UserError(
                f"{set_name} is set, but {missing_name} is not",
                where=str(location),
                todo=f"Set both, or unset both to use {_config_names(location.scheme)}.",
            )
    settings = _files(location.scheme)
    key, secret = settings.get("aws_access_key_id", ""), settings.get("aws_secret_access_key", "")
    if key and secret:
        return Credentials(key=key, secret=secret, token=settings.get("aws_session_token") or None)
    names = _VARIABLES[location.scheme][0]
    raise UserError(
        "there are no credentials for this store",
        where=str(location),
        todo=f"Set {names[0]} and {names[1]} (and {names[2]} with temporary ones), or write them "
        f"to {_config_names(location.scheme)}. For a public bucket set AWS_SKIP_SIGNATURE=true.",
    )


def without_secrets(text: str, location: Location) -> str:
    """Return a message with every known secret replaced."""
    secrets: list[str] = []
    for triples in _VARIABLES.values():
        secrets += [os.environ.get(name, "") for triple in triples for name in triple]
    values = _files(location.scheme)
    secrets += [values.get(name, "") for name in values if name.startswith("aws_")]
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) > 3:
            text = text.replace(secret, "***")
    return text


def _is_virtual(scheme: str, endpoint: str, host: str) -> bool:
    """Return whether the bucket is part of the host name: in public stores, not in test servers."""
    if not endpoint:
        return True
    if endpoint.startswith("http://") or host == "localhost":
        return False
    try:
        ip_address(host)
    except ValueError:
        return scheme == "obs" or host.endswith(_OBS_DOMAIN)
    return False


def _with_scheme(endpoint: str) -> str:
    if not endpoint or "://" in endpoint:
        return endpoint
    is_plain = os.environ.get("S3_USE_HTTPS", "1").lower() in ("0", "false")
    return f"{'http' if is_plain else 'https'}://{endpoint}"


def _first(names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := os.environ.get(name, "").strip())), "")


def _config_names(scheme: str) -> str:
    return "~/.aws/credentials" + (" or ~/.obsutilconfig" if scheme == "obs" else "")


def _files(scheme: str) -> dict[str, str]:
    """Read settings from the files of the stores' own tools; unreadable files are ignored."""
    values: dict[str, str] = {}
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - never raises
    if scheme == "obs":
        lines = _read(home / ".obsutilconfig", "[obs]\n")
        names = {
            "endpoint": "endpoint_url",
            "ak": "aws_access_key_id",
            "sk": "aws_secret_access_key",
            "token": "aws_session_token",
        }
        section = dict(lines["obs"]) if lines.has_section("obs") else {}
        values = {
            setting_name: section[source_name]
            for source_name, setting_name in names.items()
            if section.get(source_name)
        }
        if values:
            return values
    profile = os.environ.get("AWS_PROFILE", "default")
    config_files = (
        (os.environ.get("AWS_CONFIG_FILE", "~/.aws/config"), f"profile {profile}"),
        (os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"), profile),
    )
    for file_name, section in config_files:
        parser = _read(Path(os.path.expanduser(file_name)))  # noqa: PTH111 - never raises
        for name in (section, profile):
            if parser.has_section(name):
                values |= dict(parser[name])
                break
    return values


def _read(path: Path, head: str = "") -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(head + path.read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error):
        return configparser.RawConfigParser()
    return parser
