"""HCCL's variables: mistakes that a job would report minutes after its start are found before."""

from pathlib import Path

import pytest

from jumar.launching.hccl import hccl_advice


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("lo", "eth0", "enp67s0f5"):
        (tmp_path / "sys" / "class" / "net" / name).mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "white.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"PATH": "/bin", "HCCLX": "1"},
        {"HCCL_CONNECT_TIMEOUT": "7200", "HCCL_EXEC_TIMEOUT": "1700", "HCCL_EVENT_TIMEOUT": "1768"},
        {"HCCL_SOCKET_IFNAME": "enp,eth1", "HCCL_RDMA_TC": "132", "HCCL_RDMA_RETRY_CNT": "7"},
        {"HCCL_SOCKET_IFNAME": "^docker"},
        {"HCCL_SOCKET_IFNAME": "=eth0", "HCCL_IF_IP": "10.0.0.1", "HCCL_SOCKET_FAMILY": "AF_INET"},
        {"HCCL_WHITELIST_DISABLE": "0", "HCCL_WHITELIST_FILE": "/etc/white.json"},
        {"HCCL_INTRA_PCIE_ENABLE": "1", "HCCL_INTRA_ROCE_ENABLE": "0", "HCCL_ALGO": "level0:ring"},
    ],
)
def test_valid_hccl_values_get_no_advice(root: Path, variables: dict[str, str]) -> None:
    assert hccl_advice(variables, root) == []


@pytest.mark.parametrize(
    ("variables", "level", "what", "todo"),
    [
        (
            {"HCCL_CONNECT_TIMEOUT": "60"},
            "error",
            "HCCL_CONNECT_TIMEOUT=60 must be a whole number from 120 to 7200 s (EI0001)",
            "unset HCCL_CONNECT_TIMEOUT",
        ),
        ({"HCCL_CONNECT_TIMEOUT": "20min"}, "error", "must be a whole number", "unset"),
        ({"HCCL_RDMA_TC": "130"}, "error", "from 0 to 255 in steps of 4", "unset"),
        ({"HCCL_SOCKET_FAMILY": "IPV4"}, "error", "one of AF_INET, AF_INET6", "unset"),
        ({"HCCL_IF_BASE_PORT": "80"}, "error", "from 1024 to 65520", "unset"),
        (
            {"HCCL_EXEC_TIMEOUT": "17340"},
            "warning",
            "not below jumar's timeout of 1800 s",
            "HCCL_EXEC_TIMEOUT=1700",
        ),
        (
            {"HCCL_EXEC_TIMEOUT": "900", "HCCL_EVENT_TIMEOUT": "900"},
            "error",
            "HCCL_EVENT_TIMEOUT=900 must exceed",
            "HCCL_EVENT_TIMEOUT=968",
        ),
        (
            {"HCCL_INTRA_PCIE_ENABLE": "1", "HCCL_INTRA_ROCE_ENABLE": "1"},
            "error",
            "are both 1",
            "Unset one",
        ),
        ({"HCCL_SOCKET_IFNAME": "eno"}, "error", "matches no interface", "enp67s0f5, eth0, lo"),
        ({"HCCL_SOCKET_IFNAME": "=eth"}, "error", "matches no interface", "eth0"),
        ({"HCCL_IF_IP": "node1"}, "error", "an IPv4 or IPv6 address", "unset"),
        (
            {"HCCL_IF_IP": "fe80::1", "HCCL_SOCKET_FAMILY": "AF_INET"},
            "error",
            "is not an address of HCCL_SOCKET_FAMILY=AF_INET",
            "same family",
        ),
        ({"HCCL_WHITELIST_DISABLE": "0"}, "error", "it is not set", "unset"),
        (
            {"HCCL_WHITELIST_DISABLE": "0", "HCCL_WHITELIST_FILE": "/etc/black.json"},
            "error",
            "'/etc/black.json' is not a file",
            "Write the file",
        ),
        (
            {"HCCL_CONECT_TIMEOUT": "1200"},
            "warning",
            "HCCL_CONECT_TIMEOUT is not a known HCCL variable",
            "Did you mean HCCL_CONNECT_TIMEOUT?",
        ),
    ],
)
def test_invalid_hccl_values_are_named_with_their_range(
    root: Path, variables: dict[str, str], level: str, what: str, todo: str
) -> None:
    (advice,) = hccl_advice(variables, root)
    assert advice.level == level
    assert what in advice.what
    assert todo in advice.todo
