"""Keeps tests on this machine: an audit hook refuses in words, and Linux gives them a network of their own.

The hook sees every call of Python's sockets, and its error names what was asked for. Programs that a test starts, and
libraries that make system calls themselves, it does not see. Where the tests may make a network namespace (Linux,
as root), these have the loopback device and nothing else. Elsewhere, programs that read the usual variables are sent to
a proxy that nobody serves.
"""

import contextlib
import ctypes
import fcntl
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMESPACE = Path("/proc/thread-self/ns/net")
CLONE_NEWNET = 0x40000000  # of <linux/sched.h>
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40  # of <linux/sockios.h> and <linux/if.h>
NOBODY = "http://127.0.0.1:9"
PROXIES = {"http_proxy": NOBODY, "https_proxy": NOBODY, "ftp_proxy": NOBODY, "no_proxy": "localhost,127.0.0.1,::1"}
TO_ADDRESS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
TO_NAME = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}


class Network:
    """What the tests of this process can reach.

    Attributes:
        closed: whether only this machine can be reached.
        namespaces: files of the network of this machine and of the one with nothing but the loopback device; none
            where the second cannot be made.
    """

    def __init__(self) -> None:
        self.closed = False
        self.namespaces: tuple[int, int] | None = None

    def prepare(self) -> None:
        """Add the hook, which cannot be taken away, and make the closed network, if that is possible."""
        sys.addaudithook(self._audit)
        self.namespaces = _namespaces()

    @contextlib.contextmanager
    def only_here(self) -> Iterator[None]:
        """Close the network for this thread, for the threads and programs that it starts, and for Python's sockets."""
        kept = {name: os.environ.get(name) for lower in PROXIES for name in (lower, lower.upper())}
        os.environ.update({name: PROXIES[name.lower()] for name in kept})
        self.closed = True
        if self.namespaces:
            _enter(self.namespaces[1])
        try:
            yield
        finally:
            if self.namespaces:
                _enter(self.namespaces[0])
            self.closed = False
            for name, value in kept.items():
                os.environ.pop(name, None)
                os.environ.update({} if value is None else {name: value})

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.closed or not event.startswith("socket."):
            return
        host: Any = None
        if event in TO_ADDRESS and arguments[0].family in (socket.AF_INET, socket.AF_INET6) and arguments[1]:
            host = arguments[1][0]
        elif event in TO_NAME:
            host = arguments[0][0] if isinstance(arguments[0], tuple) else arguments[0]
        if not is_here(host):
            raise PermissionError(f"a test without the mark 'registry' asked for {host} ({event})")


def is_here(host: str | bytes | bytearray | None) -> bool:
    """Whether a host is this machine: none, ``localhost``, this machine's own name, or an address of its loopback."""
    name = host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else host
    if not name or name in ("localhost", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _namespaces() -> tuple[int, int] | None:
    """Make a network with a loopback device alone; leave this thread in the one that it was in."""
    try:
        outer = os.open(NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
        if ctypes.CDLL(None).unshare(CLONE_NEWNET):
            os.close(outer)
            return None
    except (OSError, AttributeError):  # this is not Linux
        return None
    inner = os.open(NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP | IFF_RUNNING))
    _enter(outer)
    return outer, inner


def _enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "a thread of the tests cannot change its network")
