"""No test that is not marked to fetch real data reaches beyond this machine, whatever it tries."""

import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable

import pytest

from tests.network import PROXIES, Network

OUTSIDE = ("192.0.2.1", 80)  # reserved for documentation (RFC 5737): nobody has it
OUTSIDE_6 = ("2001:db8::1", 80, 0, 0)  # RFC 3849
NAME = "replications.invalid"


def over(kind: socket.SocketKind, call: Callable[[socket.socket], object], family: int = socket.AF_INET) -> object:
    with socket.socket(family, kind) as own:
        own.settimeout(2.0)
        return call(own)


TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
WAYS: dict[str, Callable[[], object]] = {
    "connect": lambda: over(TCP, lambda own: own.connect(OUTSIDE)),
    "connect over IPv6": lambda: over(TCP, lambda own: own.connect(OUTSIDE_6), socket.AF_INET6),
    "connect of a C class": lambda: over(TCP, lambda own: super(socket.socket, own).connect(OUTSIDE)),
    "sendto": lambda: over(UDP, lambda own: own.sendto(b"x", OUTSIDE)),
    "sendmsg": lambda: over(UDP, lambda own: own.sendmsg([b"x"], [], 0, OUTSIDE)),
    "getaddrinfo": lambda: socket.getaddrinfo(NAME, 80),
    "gethostbyname": lambda: socket.gethostbyname(NAME),
    "gethostbyaddr": lambda: socket.gethostbyaddr(OUTSIDE[0]),
    "getnameinfo": lambda: socket.getnameinfo(OUTSIDE, 0),
}
PROGRAM = f"""
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
    own.connect({OUTSIDE})
"""


@pytest.mark.parametrize("way", WAYS)
def test_every_call_of_a_socket_is_refused_by_name(way: str) -> None:
    with pytest.raises(PermissionError, match="a test without the mark 'registry' asked for "):
        WAYS[way]()


def test_a_program_that_a_test_starts_finds_no_network(network: Network) -> None:
    if network.namespaces is None:
        pytest.skip("only root can give programs a network of their own, and only on Linux")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert "Network is unreachable" in done.stderr


def test_a_program_that_uses_proxies_is_sent_to_nobody() -> None:
    program = "import urllib.request; print(urllib.request.getproxies())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert repr(PROXIES["https_proxy"]) in done.stdout
    assert urllib.request.getproxies()["https"] == PROXIES["https_proxy"]


def test_this_machine_is_reached(network: Network) -> None:
    assert network.closed
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(("localhost", server.getsockname()[1])) as there,
        server.accept()[0] as here,
    ):
        there.sendall(b"x")
        assert here.recv(1) == b"x"


@pytest.mark.registry
def test_the_mark_opens_the_network(network: Network) -> None:
    assert not network.closed
    with pytest.raises(socket.gaierror):  # asked for, and there is none
        socket.getaddrinfo(NAME, 80)
    with network.only_here(), pytest.raises(PermissionError):
        socket.getaddrinfo(NAME, 80)
    assert not network.closed
