"""Hosts of a run recognise each other, and others neither join it nor hold it up."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.sampling.executors.choosing import connect as connect_cluster
from gibbsite.sampling.executors.partitions import site_executor as executor_module
from gibbsite.sampling.executors.partitions.links import Link, LinkLost
from gibbsite.sampling.executors.partitions.meeting import call_all, connect, listen
from tests.sampling.executors.running import same, sample

TOKEN = b"t" * 32
Address = tuple[str, int]


def greeting(number: int, proof: bytes) -> bytes:
    return number.to_bytes(4, "big") + proof


def visit(address: Address, words: bytes) -> socket.socket:
    end = socket.create_connection(address, timeout=30)
    end.sendall(words)
    return end


def answer_to(end: socket.socket) -> bytes:
    """Return the answer to a caller; nothing, if it is refused."""
    try:
        return end.recv(100)
    except ConnectionResetError:  # its words were not even read
        return b""


def hang_up(address: Address) -> None:
    """Call and reset the connection at once."""
    end = visit(address, b"?")
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()


@pytest.fixture
def listeners() -> Iterator[list[socket.socket]]:
    found = [listen("127.0.0.1") for _ in range(3)]
    yield found
    for listener in found:
        listener.close()


def places(listeners: list[socket.socket]) -> list[Address]:
    return [(listener.getsockname()[0], listener.getsockname()[1]) for listener in listeners]


def meet(listeners: list[socket.socket]) -> list[dict[int, Link]]:
    with ThreadPoolExecutor(len(listeners)) as pool:
        return list(pool.map(lambda k: connect(listeners[k], k, places(listeners), TOKEN), range(len(listeners))))


def close_all(found: list[dict[int, Link]]) -> None:
    for links in found:
        for link in links.values():
            link.close()


def test_hosts_find_each_other_and_turn_strangers_away(listeners: list[socket.socket]) -> None:
    addresses = places(listeners)
    with ExitStack() as stack:
        silent = [stack.enter_context(visit(addresses[0], b"")) for _ in range(80)]  # more than may wait
        half = stack.enter_context(visit(addresses[0], b"?" * 20))
        guessing = stack.enter_context(visit(addresses[0], greeting(2, b"?" * 32)))
        knowing_the_word = stack.enter_context(visit(addresses[1], greeting(2, TOKEN)))
        hang_up(addresses[0])
        found = meet(listeners)
        for stranger in (*silent, half, guessing, knowing_the_word):
            assert answer_to(stranger) == b""
    assert [sorted(links) for links in found] == [[1, 2], [0, 2], [0, 1]]
    found[0][2].send(np.arange(5))
    assert found[2][0].receive(np.empty(5, np.int64)).tolist() == [0, 1, 2, 3, 4]
    found[0][1].close()
    with pytest.raises(LinkLost):
        found[1][0].receive(np.empty(1, np.int64))
    close_all(found)


def test_messages_between_hosts_admit_no_stranger(listeners: list[socket.socket]) -> None:
    """A proof that was overheard is of no use at another host, nor a second time at the same one."""
    addresses = places(listeners)
    with listen("127.0.0.1") as ear:
        (link,) = call_all(places([ear]), TOKEN) or ()
        end, _ = ear.accept()
        heard = end.recv(100)
    assert TOKEN not in heard
    own = heard[4:]  # of caller 1 to host 0
    with visit(addresses[1], greeting(1, own)) as one, visit(addresses[1], greeting(2, own)) as other:
        found = meet(listeners)
        assert answer_to(one) == answer_to(other) == b""
    close_all(found)
    with visit(addresses[0], heard) as first, visit(addresses[0], heard) as second:
        calls = call_all(addresses[:2], TOKEN) or ()
        links = connect(listeners[0], 0, addresses[:2], TOKEN, client=True)
        assert sorted(len(answer_to(each)) for each in (first, second)) == [0, 32]
    close_all([links, dict(enumerate((*calls, link)))])
    end.close()


@pytest.mark.parametrize("said", [b"", b"?" * 40, b"!" * 4000])
def test_an_impostor_at_the_place_of_a_host_learns_nothing(said: bytes) -> None:
    with listen("127.0.0.1") as listener:
        (link,) = call_all(places([listener]), TOKEN) or ()
        end, _ = listener.accept()
        end.settimeout(30)
        link.send_arrays([{"states": np.arange(1000)}])
        assert len(end.recv(100)) == 36  # the greeting
        end.sendall(said)
        end.shutdown(socket.SHUT_WR)
        with pytest.raises(LinkLost, match="belongs to the run"):
            link.receive(np.empty(1, np.int64))
        assert end.recv(100) == b""
        link.close()
        end.close()


def test_arrays_travel_as_they_are() -> None:
    one, other = (Link(end) for end in socket.socketpair())
    trace = np.arange(12.0).reshape(3, 4)
    sent: list[dict[str, Any]] = [
        {"part": trace[:, 1:3], "none": np.empty((0, 3), np.float32), "number": np.array(7, np.uint8)},
        {},
        {"flags": np.array([True, False])},
    ]
    one.send_arrays(sent)
    trace[:] = 0.0  # what was handed over was copied
    found = other.receive_arrays()
    sent[0]["part"] = np.arange(12.0).reshape(3, 4)[:, 1:3]
    assert [list(each) for each in found] == [list(each) for each in sent]
    for there, here in zip(found, sent, strict=True):
        for name, part in here.items():
            assert there[name].dtype == part.dtype and there[name].shape == part.shape
            assert there[name].tobytes() == part.tobytes()
    one.close(), other.close()


@pytest.mark.long
@pytest.mark.filterwarnings("default", "ignore::gibbsite.errors.ConvergenceWarning")
def test_strangers_do_not_hold_up_a_run_on_a_closed_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """They call every host before anybody else does, and the run has the bytes of threads."""
    pytest.importorskip("distributed")
    model = gs.ising_grid((70, 61), coupling=0.3)
    alone = sample(model, sweeps=70, chains=2)
    strangers: list[socket.socket] = []

    def call_after_others(addresses: list[Address], token: bytes) -> Any:
        for address in addresses:
            assert address[0] == "127.0.0.1"  # no other machine reaches it
            hang_up(address)
            strangers.extend(visit(address, words) for words in (b"", greeting(2, b"?" * 32)))
        return call_all(addresses, token)

    monkeypatch.setattr(executor_module, "call_all", call_after_others)
    with connect_cluster("local-dask") as client:
        found = sample(model, sweeps=70, chains=2, on=gs.Cluster(client, partitions=2))
        assert client.scheduler.address.startswith("tls://")
        assert len(strangers) == 4  # hosts were opened once
        for stranger in strangers:
            with stranger:
                assert answer_to(stranger) == b""
    assert same(alone, found)
