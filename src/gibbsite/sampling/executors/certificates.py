"""Keys for clusters of this machine: whoever reaches a scheduler of Dask runs code, so no other user may.

Scheduler, workers and client talk by TLS and accept only each other: all have the same certificate, which is
made for one cluster and signed by itself. The key is in the memory of these processes, which are of one user.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError

_DAYS = 365


def make_security() -> Any:
    """Return keys for one cluster, as a ``distributed.Security``.

    They are made by the package ``cryptography`` or, where it is missing, by the command ``openssl``.

    Raises
    ------
    ArgumentError
        If there is neither.
    """
    distributed: Any = import_module("distributed")
    with suppress(ImportError):
        return distributed.Security.temporary()
    key, certificate = _make_by_command()
    parts = {
        f"tls_{role}_{what}": text
        for role in ("client", "scheduler", "worker")
        for what, text in (("key", key), ("cert", certificate))
    }
    return distributed.Security(require_encryption=True, tls_ca_file=certificate, **parts)


def _make_by_command() -> tuple[str, str]:
    """Return a key and a certificate for it, made by ``openssl`` in a folder that only this user can read."""
    command = shutil.which("openssl")
    if command is None:
        raise ArgumentError(
            f"{argument('on', 'local-dask')} needs the package cryptography, so that other users of this "
            "machine cannot reach the cluster; install it with: pip install cryptography"
        )
    with tempfile.TemporaryDirectory(prefix="gibbsite-") as folder:  # of mode 700
        key, certificate = Path(folder) / "key.pem", Path(folder) / "certificate.pem"
        name = "dask-internal"
        words = f"req -x509 -newkey rsa:2048 -nodes -subj /CN={name} -addext subjectAltName=DNS:{name}"
        made = subprocess.run(
            [command, *words.split(), "-days", str(_DAYS), "-keyout", str(key), "-out", str(certificate)],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise ArgumentError(
                f"{argument('on', 'local-dask')}: openssl made no keys ({made.stderr.strip()[-200:]}); "
                "install the package cryptography instead."
            )
        return key.read_text(encoding="ascii"), certificate.read_text(encoding="ascii")
