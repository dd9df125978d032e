"""A local cluster is closed to whoever has not its key: whoever reaches a scheduler runs code."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any

import pytest

from gibbsite.sampling.executors import certificates
from gibbsite.sampling.executors.certificates import make_security
from gibbsite.sampling.executors.choosing import connect

distributed: Any = pytest.importorskip("distributed")


def test_keys_are_made_for_each_cluster() -> None:
    one, other = certificates._make_by_command(), certificates._make_by_command()
    assert one != other
    assert one[0].startswith("-----BEGIN PRIVATE KEY-----")
    assert one[1].startswith("-----BEGIN CERTIFICATE-----")
    assert make_security().require_encryption


@pytest.mark.long
def test_a_local_cluster_is_closed_to_others() -> None:
    with connect("local-dask") as client:
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        told = client.scheduler_info()
        assert all(worker.startswith("tls://127.0.0.1:") for worker in told["workers"])
        assert client.submit(sum, [1, 2]).result() == 3
        for place, security in ((address.replace("tls", "tcp"), None), (address, make_security())):
            with pytest.raises(OSError):
                distributed.Client(place, timeout=5, security=security)
        page = f"http://127.0.0.1:{told['services']['dashboard']}"
        for path in ("/status", "/info/main/workers.html", "/json/identity.json"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(page + path, timeout=5)
