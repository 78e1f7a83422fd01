import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.stores import cache, download
from jumar.stores.client import ConditionFailed, StoreError, client_of
from jumar.stores.fetching import fetched
from jumar.stores.location import parse
from tests.stores.known import forget, point_at
from tests.stores.servers import (
    BUCKET,
    KEY,
    SECRET,
    Dies,
    Server,
    environment,
    every_tenth_fails,
    proxy,
    slow,
)

MIB = 2**20


@pytest.fixture
def store(store_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    point_at(store_server, monkeypatch, tmp_path)
    return store_server


def put(name: str, content: bytes) -> str:
    url = f"s3://{BUCKET}/{name}"
    client_of(parse(url)).write(parse(url), content)
    return url


def on_disk(folder: Path) -> int:
    """Bytes in the cache, without its notes on itself."""
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
        and (not path.name.startswith(cache.OWN_PREFIX) or f"{cache.OWN_PREFIX}part" in path.name)
    )


@pytest.mark.usefixtures("store")
def test_objects_of_any_size_are_fetched_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PART_BYTES", 1000)
    for size in (0, 1, 999, 1000, 1001, 12_345):
        content = os.urandom(size)
        assert fetched(put(f"sizes/{size}", content)).read_bytes() == content
    folder = fetched(f"s3://{BUCKET}/sizes")
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == {
        str(size): size for size in (0, 1, 999, 1000, 1001, 12_345)
    }


@pytest.mark.usefixtures("store")
def test_only_changed_objects_are_fetched_again(
    store: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = put("changing", b"before")
    assert fetched(url).read_bytes() == b"before"
    with proxy(store, lambda handler, number: False) as counting:
        point_at(counting, monkeypatch, tmp_path)
        assert fetched(url).read_bytes() == b"before"
        assert not [line for line in counting.requests if line.startswith("GET")]
        put("changing", b"behind")
        forget()
        assert fetched(url).read_bytes() == b"behind"


@pytest.mark.usefixtures("store")
def test_object_changing_while_read_is_an_error() -> None:
    client = client_of(parse(put("read", b"12345678")))
    stored = client.head(parse(f"s3://{BUCKET}/read"))
    put("read", b"abcdefgh")
    with pytest.raises(ConditionFailed):
        client.read(stored, 0, 4)


def test_failing_one_request_in_ten_changes_no_byte(
    store: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "PART_BYTES", 10_000)
    contents = {f"{number}.bin": os.urandom(25_000) for number in range(25)}
    with proxy(store, every_tenth_fails) as failing:
        point_at(failing, monkeypatch, tmp_path)
        for name, content in contents.items():
            put(f"failing/{name}", content)
        folder = fetched(f"s3://{BUCKET}/failing")
        assert {name: (folder / name).read_bytes() for name in contents} == contents
        assert len(failing.requests) > 100


def test_parts_of_a_slow_store_are_read_at_once(
    store: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "PART_BYTES", 1000)
    url = put("slow", os.urandom(32_000))
    with proxy(store, slow) as late:
        point_at(late, monkeypatch, tmp_path)
        began = time.monotonic()
        fetched(url)
        assert time.monotonic() - began < 32 * 0.05


def test_failing_store_leaves_no_partial_file_and_no_credentials_in_the_message(
    store: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "PART_BYTES", 1000)
    url = put("dying", os.urandom(50_000))
    monkeypatch.setenv("JUMAR_STORE_PATIENCE", "0.3")
    with proxy(store, Dies(20)) as dying:
        point_at(dying, monkeypatch, tmp_path)
        with pytest.raises(StoreError, match="has not responded correctly") as raised:
            fetched(url)
    assert KEY not in str(raised.value)
    assert SECRET not in str(raised.value)
    assert on_disk(tmp_path / "cache") == 0


def test_refusal_is_reported_immediately_without_credentials(
    store: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handler: object, number: int) -> bool:
        body = f"<Error><Code>InvalidAccessKeyId</Code><Message>{KEY}</Message></Error>".encode()
        handler.send_response_only(403)  # pyright: ignore
        handler.send_header("Content-Length", str(len(body)))  # pyright: ignore
        handler.end_headers()  # pyright: ignore
        handler.wfile.write(body)  # pyright: ignore
        return True

    with proxy(store, refuse) as refusing:
        point_at(refusing, monkeypatch, tmp_path)
        with pytest.raises(StoreError, match="rejects the request") as raised:
            client_of(parse(f"s3://{BUCKET}")).list(parse(f"s3://{BUCKET}/x"))
    assert KEY not in str(raised.value)
    assert len(refusing.requests) == 1


@pytest.mark.usefixtures("store")
def test_cache_stays_below_its_limit_and_evicts_least_recently_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "250kB")
    urls = [put(f"limit/{number}", os.urandom(100_000)) for number in range(4)]
    paths: list[Path] = []
    for url in urls:
        paths.append(fetched(url))
        assert on_disk(tmp_path / "cache") <= 250_000
        forget()
        time.sleep(0.02)
    assert [path.exists() for path in paths] == [False, False, True, True]


@pytest.mark.usefixtures("store")
def test_entries_in_use_are_kept_and_oversized_ones_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "150kB")
    used = fetched(put("used", os.urandom(100_000)))
    with pytest.raises(UserError, match="do not fit into the cache"):
        fetched(put("more", os.urandom(100_000)))
    assert used.exists()
    assert on_disk(tmp_path / "cache") == 100_000


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("text", ["much", "-5", "5 parsecs"])
def test_invalid_cache_limit_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, text)
    with pytest.raises(UserError, match="is not a size"):
        cache.limit_bytes()


def test_concurrent_processes_fetch_an_object_once(store: Server, tmp_path: Path) -> None:
    content = os.urandom(300_000)
    url = put("together", content)
    program = (
        "import sys, hashlib\nfrom jumar.stores.fetching import fetched\n"
        "print(hashlib.sha256(fetched(sys.argv[1]).read_bytes()).hexdigest())"
    )
    with proxy(store, slow) as late:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", program, url],
                env=environment(late, tmp_path / "together"),
                stdout=subprocess.PIPE,
            )
            for _ in range(3)
        ]
        outputs = {process.communicate()[0] for process in processes}
    assert len(outputs) == 1
    assert len([line for line in late.requests if line.startswith("GET")]) == 1


@pytest.mark.usefixtures("store")
def test_missing_objects_are_reported() -> None:
    with pytest.raises(UserError, match="there is no such object, and none below it"):
        fetched(f"s3://{BUCKET}/nowhere")
    with pytest.raises(UserError, match="no such object or bucket"):
        fetched("s3://no-such-bucket/a")


@pytest.mark.usefixtures("store")
def test_forked_process_is_refused_instead_of_hanging() -> None:
    location = parse(put("forked", b"1"))
    client = client_of(location)
    child = os.fork()
    if not child:
        try:
            client.head(location)
            os._exit(1)
        except StoreError:
            os._exit(0)
        except BaseException:
            os._exit(2)
    deadline = time.monotonic() + 10
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
        time.sleep(0.01)
    assert ended == (child, 0)
