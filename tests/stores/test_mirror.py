import contextlib
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.stores.answers import NoSuchObject, StoreError
from jumar.stores.client import Client, client_of
from jumar.stores.fetching import fetched
from jumar.stores.location import Location, parse
from jumar.stores.manifest import MANIFEST, read_manifest
from jumar.stores.mirror import Mirror, local_run, pull
from jumar.stores.ownership import LEASE_VARIABLE, OWNER, Ownership
from tests.stores.known import forget, point_at
from tests.stores.servers import BUCKET, Dies, ProxyHandler, Server, every_tenth_fails, proxy


@pytest.fixture
def run(
    store_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Location]:
    point_at(store_server, monkeypatch, tmp_path)
    monkeypatch.setenv(LEASE_VARIABLE, "0.6")
    monkeypatch.setenv("JUMAR_STORE_PATIENCE", "2")
    yield parse(f"s3://{BUCKET}/runs/{tmp_path.name}")
    forget()


def quiet(_: str) -> None:
    pass


def opened(run: Location, say: Callable[[str], None] = quiet) -> Mirror:
    ownership = Ownership(client_of(run), run, say)
    ownership.claim()
    mirror = Mirror(run, ownership, say, period_s=0.05)
    mirror.start()
    return mirror


def write(local: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (local / name).parent.mkdir(parents=True, exist_ok=True)
        (local / name).write_text(text)


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def stored(run: Location) -> dict[str, str]:
    client = Client(run)
    names = {each.location.key[len(run.key) + 1 :]: each.location for each in client.list(run)}
    result: dict[str, str] = {}
    for name, place in names.items():
        if name not in (MANIFEST, OWNER):
            with contextlib.suppress(NoSuchObject):  # deleted by the mirror since it was listed
                result[name] = client.read_small(place)[0].decode()
    return result


def until(happens: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.02)


RUN = {
    "recipe.json": "{}",
    "metrics.jsonl": "1\n",
    "checkpoints/step-00000001/model.safetensors": "weights",
}


def on_a_bare_machine(run: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "other machine"))
    forget()
    return pull(run, quiet)


def test_run_is_mirrored_while_running_under_its_file_names(
    run: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = local_run(run)
    mirror = opened(run)
    write(local, RUN)
    until(lambda: stored(run) == RUN)
    write(local, {"metrics.jsonl": "1\n2\n"})
    until(lambda: "1\n2\n" in stored(run).values())
    shutil.rmtree(local / "checkpoints" / "step-00000001")
    write(local, {"checkpoints/step-00000002/model.safetensors": "more", ".hidden/half": "x"})
    assert mirror.close() is None
    expected = {
        "recipe.json": "{}",
        "metrics.jsonl": "1\n2\n",
        "checkpoints/step-00000002/model.safetensors": "more",
    }
    assert stored(run) == expected
    assert contents(on_a_bare_machine(run, tmp_path, monkeypatch)) == expected


def test_store_has_a_complete_state_whenever_the_machine_is_lost(
    run: Location, store_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(local_run(run), RUN)
    assert opened(run).close() is None
    after = {
        **RUN,
        "metrics.jsonl": "2\n",
        "checkpoints/step-00000002/model.safetensors": "more",
    }
    states: list[bool] = []
    for requests in range(10, 22):
        with proxy(store_server, Dies(requests)) as dying:
            point_at(dying, monkeypatch, tmp_path)
            monkeypatch.setenv("JUMAR_STORE_PATIENCE", "0.05")
            write(pull(run, quiet), after)
            with contextlib.suppress(StoreError):
                opened(run).close()
        point_at(store_server, monkeypatch, tmp_path)
        client_of(run).delete(run.below(OWNER))
        shutil.rmtree(tmp_path / "other machine", ignore_errors=True)
        result = contents(on_a_bare_machine(run, tmp_path, monkeypatch))
        assert result in (RUN, after)
        states.append(result == after)
    assert states[0] is False
    assert states[-1] is True


def test_uploads_of_a_job_lost_before_its_manifest_are_deleted_with_the_next(
    run: Location,
) -> None:
    write(local_run(run), RUN)
    assert opened(run).close() is None
    hashed = "@0123456789abcdef"
    leftovers = ("checkpoints/step-00000007/model.safetensors", f"metrics.jsonl{hashed}")
    elsewhere = (f"sub/metrics.jsonl{hashed}", "sub/checkpoints/step-00000001/model.safetensors")
    beside = ("notes.txt", "me@home", "checkpoints/best.ckpt", "checkpoints/step-1/mine.ckpt")
    others = dict.fromkeys((*beside, *elsewhere), "theirs")
    for name in (*leftovers, *others):
        client_of(run).write(run.below(name), b"theirs")
    mirror = opened(run)
    assert set(leftovers) <= set(stored(run))
    write(local_run(run), {"metrics.jsonl": "2\n"})
    assert mirror.close() is None
    assert stored(run) == RUN | {"metrics.jsonl": "2\n"} | others


def test_checkpoints_in_a_store_without_a_manifest_are_not_touched(run: Location) -> None:
    theirs = "checkpoints/step-00000500/weights.ckpt"
    client_of(run).write(run.below(theirs), b"theirs")
    write(local_run(run), RUN)
    assert opened(run).close() is None
    assert stored(run) == RUN | {theirs: "theirs"}


def test_upload_that_the_lost_job_also_made_is_kept(run: Location) -> None:
    write(local_run(run), RUN)
    assert opened(run).close() is None
    again = "checkpoints/step-00000002/model.safetensors"
    client_of(run).write(run.below(again), b"cut off")
    write(local_run(run), {again: "whole"})
    assert opened(run).close() is None
    assert stored(run) == RUN | {again: "whole"}


def test_failing_one_request_in_ten_changes_nothing(
    run: Location, store_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMAR_STORE_PATIENCE", "20")
    monkeypatch.setenv(LEASE_VARIABLE, "20")
    with proxy(store_server, every_tenth_fails) as failing:
        point_at(failing, monkeypatch, tmp_path)
        local = local_run(run)
        mirror = opened(run)
        for number in range(12):
            write(local, {f"part-{number}": str(number) * 100, "metrics.jsonl": "x" * number})
        assert mirror.close() is None
        assert len(failing.requests) > 30
        there = on_a_bare_machine(run, tmp_path, monkeypatch)
        assert contents(there) == contents(local)


def test_failing_mirror_is_reported_once_and_at_the_end(
    run: Location, store_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    death = Dies(10**9)
    with proxy(store_server, death) as dying:
        point_at(dying, monkeypatch, tmp_path)
        monkeypatch.setenv("JUMAR_STORE_PATIENCE", "0.05")
        mirror = opened(run, messages.append)
        death.after = 0
        write(local_run(run), RUN)
        until(lambda: messages)
        time.sleep(0.3)
        assert len(messages) == 1
        assert "Training continues" in messages[0]
        failure = mirror.close()
    assert failure is not None
    assert "has not responded correctly" in str(failure)
    assert contents(local_run(run)) == RUN


def test_two_jobs_cannot_write_one_run(run: Location) -> None:
    mirror = opened(run)
    other = Ownership(Client(run), run, quiet)
    with pytest.raises(UserError, match="another job is writing to this run"):
        # As from another machine: this process is alive here.
        other.claim()
    assert mirror.close() is None
    other.claim()
    other.release()


def test_only_one_of_concurrent_jobs_gets_the_run(run: Location) -> None:
    owners = [Ownership(Client(run), run, quiet) for _ in range(6)]
    results: list[object] = []

    def claim(owner: Ownership) -> None:
        try:
            owner.claim()
            results.append(owner)
        except UserError as error:
            results.append(error)

    threads = [threading.Thread(target=claim, args=(owner,)) for owner in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [each for each in results if isinstance(each, Ownership)]
    assert len(results) == 6
    assert len(winners) == 1
    winners[0].release()


def test_run_of_a_dead_owner_is_taken_over(run: Location) -> None:
    dead = {"id": "x", "host": "elsewhere", "process": 1, "boot": "other", "space": "y"}
    client_of(run).write(run.below(OWNER), json.dumps(dead).encode())
    messages: list[str] = []
    began = time.monotonic()
    mirror = opened(run, messages.append)
    assert time.monotonic() - began >= 0.6
    assert "process 1 on elsewhere" in messages[0]
    assert mirror.close() is None


def test_replaced_owner_stops_writing(run: Location) -> None:
    messages: list[str] = []
    mirror = opened(run, messages.append)
    client_of(run).write(run.below(OWNER), b'{"id": "another"}')
    write(local_run(run), RUN)
    until(lambda: any("another job has taken over this run" in line for line in messages))
    assert "taken over this run" in str(mirror.close())
    assert client_of(run).read_small(run.below(OWNER))[0] == b'{"id": "another"}'


def test_newer_local_copy_is_kept_and_an_outdated_one_set_aside(
    run: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = local_run(run)
    write(local, RUN)
    assert opened(run).close() is None
    write(local, {"metrics.jsonl": "grown"})
    assert contents(pull(run, quiet))["metrics.jsonl"] == "grown"
    here = tmp_path / "cache"
    there = on_a_bare_machine(run, tmp_path, monkeypatch)
    write(there, {"metrics.jsonl": "from elsewhere"})
    assert opened(run).close() is None
    monkeypatch.setenv("JUMAR_CACHE", str(here))
    messages: list[str] = []
    assert contents(pull(run, messages.append))["metrics.jsonl"] == "from elsewhere"
    assert "moved to" in messages[0]
    assert "grown" in contents(local.with_name(f"{local.name}.aside-1")).values()


def test_changed_object_is_detected_by_its_hash(
    run: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(local_run(run), RUN)
    assert opened(run).close() is None
    place = run.below("checkpoints/step-00000001/model.safetensors")
    client_of(run).write(place, b"WEIGHTS")
    with pytest.raises(StoreError, match="SHA-256 differs") as raised:
        on_a_bare_machine(run, tmp_path, monkeypatch)
    assert raised.value.where == str(place)
    assert not local_run(run).exists()
    with pytest.raises(StoreError, match="SHA-256 differs"):
        fetched(str(run))


def test_manifest_that_names_files_elsewhere_is_refused(run: Location) -> None:
    files = {"../../outside": {"key": "a", "size": 1, "sha256": "0"}}
    content = json.dumps({"kind": "jumar run", "format": 1, "files": files}).encode()
    client_of(run).write(run.below(MANIFEST), content)
    with pytest.raises(UserError, match="is not a manifest of a run"):
        read_manifest(client_of(run), run)


def without_conditions(handler: ProxyHandler, number: int) -> bool:
    """A store that ignores conditions on writes."""
    for name in ("If-None-Match", "If-Match"):
        if handler.command == "PUT":
            del handler.headers[name]
    return False


def test_store_without_conditional_writes_is_reported(
    run: Location, store_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    with proxy(store_server, without_conditions) as careless:
        point_at(careless, monkeypatch, tmp_path)
        write(local_run(run), RUN)
        mirror = opened(run, messages.append)
        assert mirror.close() is None
        assert stored(run) == RUN
    assert any("ignores write conditions" in line for line in messages)
