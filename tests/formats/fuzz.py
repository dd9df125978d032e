"""Mutated files for every reader: nothing but a FormatError may come out, soon, and without much memory.

    python -m tests.formats.fuzz --minutes 20 [--format uai] [--rng 1]

mutates small seeds and, where present, the real files of the data folder (``GIBBSITE_DATA``). What breaks a
reader is kept in ``tests/formats/corpus`` as FORMAT-HASH, and `test_fuzz` replays it ever after.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import numpy as np

from gibbsite.errors import FormatError, IncompatibleError
from gibbsite.formats import FORMATS, read_model
from gibbsite.formats.bif import format_bif, parse_bif
from gibbsite.formats.bqm_file import parse_bqm
from gibbsite.formats.coo import parse_coo
from gibbsite.formats.dsc import format_dsc, parse_dsc
from gibbsite.formats.edges import TITLE, format_edges, parse_edges
from gibbsite.formats.evidence import parse_evidence, parse_uai_evidence
from gibbsite.formats.net import format_net, parse_net
from gibbsite.formats.parsing import text
from gibbsite.formats.parsing.text import Source
from gibbsite.formats.rudy import format_rudy, parse_rudy
from gibbsite.formats.uai import format_uai, parse_uai
from gibbsite.formats.uai_results import parse_uai_map, parse_uai_mar, parse_uai_pr
from gibbsite.formats.wcnf import parse_wcnf
from gibbsite.formats.wcsp import parse_wcsp
from gibbsite.formats.xdsl import format_xdsl, parse_xdsl
from gibbsite.formats.xmlbif import format_xmlbif, parse_xmlbif
from gibbsite.models import FactorGraph
from tests.data import DATA

CORPUS = Path(__file__).parent / "corpus"
SECONDS = 5
"""Longest a reader may take over one small file."""

NETWORK = b"""// a network
network "odd one" { property author = "a; b"; }
variable A { type discrete [ 3 ] { <5, "5 to 9", >=10 }; property position = (1, 2); }
variable B { type discrete[2] { Asy/Patch, 0 }; }
variable C { type discrete [ 2 ] { yes, no }; }
probability ( A ) { table 0.2, 0.3, 0.5; }
probability ( B | A ) { /* rows */ (<5) 0.1, 0.9; ("5 to 9") 1e-5, 0.99999; default 0.5, 0.5; }
probability ( C | A, B ) { table 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4; }
"""
XDSL = b"""<?xml version="1.0" encoding="UTF-8"?>
<smile version="1.0" id="odd" numsamples="1000">
 <nodes>
  <cpt id="A"><state id="x"/><state id="y"/><state id="z"/><probabilities>0.2 0.3 0.5</probabilities></cpt>
  <cpt id="B"><state id="on"/><state id="off"/><parents>A</parents>
   <probabilities>.1 .9 1e-5 0.99999 0.5 0.5</probabilities></cpt>
  <noisymax id="C"><state id="high"/><state id="low"/><parents>A B</parents><strengths>2 1 0 0 1</strengths>
   <parameters>0.7 0.3 0.5 0.5 0 1 0.9 0.1 0 1 0.05 0.95</parameters></noisymax>
  <deterministic id="D"><state id="t"/><state id="f"/><parents>B C</parents>
   <resultingstates>t f f f</resultingstates></deterministic>
  <decision id="E"><state id="go"/><state id="stay"/><parents>B</parents></decision>
  <utility id="U"><parents>D E</parents><utilities>1 2 3 4</utilities></utility>
  <cpt id="F"><state id="t"/><state id="f"/><parents>E</parents><probabilities>1 0 0.5 0.5</probabilities></cpt>
 </nodes>
 <extensions><genie version="1.0" app="GeNIe"><node id="A"><name>A &amp; a</name></node></genie></extensions>
</smile>
"""
NET = b"""% a network
net { node_size = (80 40); label = "odd; one % not a comment"; }
node A { states = ("<5" "5 to 9" ">=10"); label = "years"; position = (110 301); }
discrete node B { states = (on off); }
decision D { states = ("go" "stay"); }
utility U { }
node C { states = ("yes" "no"); }
potential (A) { data = (0.2 0.3 0.5); } % prior
potential (B | A D) { data = (((0.1 0.9) (1e-5 0.99999)) ((0.5 0.5) (.25 .75)) ((1 0) (0 1))); }
potential (U | B D) { data = (((10) (-2.5)) ((1) (0))); }
potential (C | B) { }
"""
DSC = b"""// a network
belief network "odd"
properties { type a = "b; c"; }
node A { name : "Age"; type : discrete[3] = { "<5", "5 to 9", ">=10" }; position : (207, 95); }
node B { type : discrete [ 2 ] = { on, "off" }; }
node C { type: discrete[2] = {"yes", "no"}; }
probability ( A ) { 0.2, 0.3, 0.5; }
probability ( B | A ) { /* rows */ (0) : 0.1, 0.9; (1): 1e-5, 0.99999; default : .5, .5; }
probability ( C | A, B ) { (0, 0) : 0.1, 0.9; (1, 0): 0, 1; (2, 0): 1, 0; (0, 1): .3 .7; (1, 1): .4 .6; (2, 1): .2, .8; }
"""
SMALL = FactorGraph({"A": ["yes", "no"], "B": 3}, [(("A",), [0.5, 0.5]), (("A", "B"), [1, 2, 3, 4, 5, 6])])


def parse_gzip(source: Source) -> object:
    """Read the content as a file that may be packed, of any format."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(source.data)
        file.flush()
        return read_model(file.name)


READERS: dict[str, Callable[[Source], object]] = {
    "uai": parse_uai,
    "bif": parse_bif,
    "xmlbif": parse_xmlbif,
    "xdsl": parse_xdsl,
    "net": parse_net,
    "dsc": parse_dsc,
    "wcsp": parse_wcsp,
    "wcnf": parse_wcnf,
    "bqm": parse_bqm,
    "coo": parse_coo,
    "rudy": parse_rudy,
    "edges": parse_edges,
    "evidence": lambda source: parse_evidence(source, SMALL),
    "uai_evidence": parse_uai_evidence,
    "mar": parse_uai_mar,
    "map": parse_uai_map,
    "pr": parse_uai_pr,
    "gzip": parse_gzip,
}
FORMATTERS = {"uai": format_uai, "bif": format_bif, "xmlbif": format_xmlbif, "rudy": format_rudy, "edges": format_edges}
# Their writers change names that are no identifiers, and the order of nodes.
WRITERS = {"xdsl": format_xdsl, "net": format_net, "dsc": format_dsc}

TOKENS = [
    *(b"0", b"1", b"-1", b"2", b"3", b"1e400", b"1e-400", b"nan", b"inf", b"-0", b"1e12", b"1000000000"),
    *(b"2147483648", b"4294967296", b"18446744073709551616", b"0.1", b"1_0", b"0x10", b"1e", b"--1", b"1.5"),
    *(b"9" * 400, b"9" * 5000, b"\0", b"\xff", b"\xc3\xa9", b"\xe2\x80\xa8", b"#", b"//", b"/*", b"*/", b'"'),
    *(b"\\", b"(", b")", b"{", b"}", b"[", b"]", b";", b",", b"|", b"<", b">", b"&", b"&lt;", b"&x;", b"="),
    *(b"MARKOV", b"BAYES", b"property", b"default", b"table", b"variable x {", b"<TABLE>", b"</TABLE>"),
    *(b"<!ENTITY a 'b'>", b"<![CDATA[", b"<GIVEN>A</GIVEN>", b"true", b"null", b"[" * 3000, b"{" * 50, b"\r"),
    *(b"\n", b" ", b"\x1f\x8b", b"VARS", b"# vartype=SPIN\n", b"# offset=nan\n", b"\xf0\x9f\x98\x80", b"\x85"),
]


def seeds(format: str) -> list[bytes]:
    """Return files to begin with: small ones of our own, then real ones."""
    small = {
        "uai": [
            b"MARKOV\n3\n2 2 3\n3\n1 0\n2 0 1\n2 1 2\n\n2\n 0.4 0.6\n\n4\n1 2 3 4\n6\n1 0 0 1e-3 .5 6",
            b"BAYES 2 1 2  2  1 0  2 0 1  1 1.0  2 0.25 0.75 # end",
            b"MARKOV 0 \n 1 \n 0 \n 1 2.5",
        ],
        "bif": [NETWORK],
        "xmlbif": [format_xmlbif(parse_bif(Source("", NETWORK))).encode()],
        "xdsl": [XDSL],
        "net": [NET],
        "dsc": [DSC],
        "wcsp": [
            b"odd 3 3 4 100\n2 3 2\n1 0 0 1\n1 5\n2 0 1 3 2\n0 0 7\n1 2 100\n3 2 1 0 0 1\n1 2 0 12\n0 4 0\n",
            b"x 1 2 1 9 2 1 0 9 1 0 2 # end",
        ],
        "wcnf": [
            b"c old\np wcnf 3 4 10\n10 1 -2 0\n3 2 0\n4 -1 3 2 0\n2 -3 3 0\n",
            b"c new\nh 1 2 0\nc in between\n2.5 -1 0\n7 -2 1 -2 0\n1 0\n",
        ],
        "bqm": list(_bqm_seeds()),
        "coo": [b"# vartype=SPIN\n0 0 -1\n0 1 1.5\n1 7 -4.5\n", b"# vartype=BINARY\n# offset=2\n3 3 1\n3 4 1"],
        "rudy": [b"3 2\n1 2 5\n2 3 -1.5\n", b"4 3 \r\n1 2\r\n1 3\r\n4 1", b"# none\n2 0"],
        "edges": [b"# a path\na b 0.5\nb c\n", b"1,2,-1e3\n% lonely\n7\n2;3", TITLE.encode() + b"\na\nb"],
        "evidence": [b"A=yes\nB = 2 # two\n", b'{"A": "yes", "B": {"0": 0.1, "1": 0.2, "2": 1}}', b"1\n1 0 1"],
        "uai_evidence": [b"2 5 1 7 0", b"0", b"1\n2 5 1 7 0\n"],
        "mar": [b"MAR\n2 2 0.25 0.75 3 0 1 0\n", b"MAR\n1\n2 2 0.25 0.75 3 0 1 0\n"],
        "map": [b"MAP\n3 0 1 1\n", b"MAP\n1\n3 0 1 1\n"],
        "pr": [b"PR\n-12.5\n", b"PR\n1\n-12.5"],
    }
    small["gzip"] = [gzip.compress(part) for name in FORMATS for part in small[name]]
    found = small[format]
    for pattern in {
        "uai": ["uai/*/*.uai.gz"],
        "bif": ["bif/*.bif.gz"],
        "uai_evidence": ["uai/*/*.evid"],
        "mar": ["uai/*/*.MAR"],
        "map": ["uai/*/*.MAP"],
        "pr": ["uai/*/*.PR"],
        "rudy": ["physics/biqmac_*/*.gz"],
        "gzip": ["bif/*.bif.gz"],
    }.get(format, []):
        for path in sorted(DATA.glob(pattern)):
            if path.stat().st_size < 20_000:
                packed = path.read_bytes()
                found.append(gzip.decompress(packed) if path.suffix == ".gz" and format != "gzip" else packed)
    if format == "xmlbif":
        for path in sorted(DATA.glob("bif/*.bif.gz")):
            found.append(format_xmlbif(parse_bif(text.load(path))).encode())
    return found


def _bqm_seeds() -> Iterator[bytes]:
    from gibbsite.formats.bqm_file import format_bqm
    from gibbsite.models import ising

    yield format_bqm(ising([[0, 0.5, 1], [0.5, 0, 0], [1, 0, 0]], [0.1, 0.2, 0.3]))
    yield format_bqm(FactorGraph({"a": 2, "b": 2}, [("a", [1, 2]), (("a", "b"), [1, 2, 3, 4])]))


def mutate(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Return a damaged copy."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(out) + 1)
        length = min(rng.choice([1, 1, 2, 5, 20, 200, 5000]), len(out) - at)
        match rng.randrange(9):
            case 0 if at < len(out):
                out[at] = rng.randrange(256)
            case 1:
                del out[at : at + length]
            case 2:
                out[at:at] = out[at : at + length] * rng.choice([1, 2, 50])
            case 3:
                out[at:at] = rng.choice([b"", b" "]) + rng.choice(TOKENS) + rng.choice([b"", b" "])
            case 4 | 5:
                start, end = _token(out, at)
                out[start:end] = rng.choice(TOKENS)
            case 6:
                del out[at:]
            case 7:
                other = rng.choice(others)
                cut = rng.randrange(len(other) + 1)
                out[at : at + length] = other[cut : cut + rng.choice([5, 50, 500])]
            case 8:
                start, end = _token(out, at)
                other_start, other_end = _token(out, rng.randrange(len(out) + 1))
                out[start:end] = out[other_start:other_end]
    return bytes(out)


def _token(data: bytearray, at: int) -> tuple[int, int]:
    """Return the ends of the word around a place."""
    start = max(data.rfind(mark, 0, at) for mark in (b" ", b"\n", b",", b"(", b">")) + 1
    ends = [end for mark in (b" ", b"\n", b",", b")", b"<", b";") if (end := data.find(mark, at)) >= 0]
    return start, min(ends, default=len(data))


class Slow(Exception):
    """A reader took too long."""


def _alarm(number: int, frame: FrameType | None) -> None:
    raise Slow


def attempt(format: str, data: bytes) -> str | None:
    """Return what went wrong with one file, None if nothing."""
    timed = hasattr(signal, "SIGALRM")
    if timed:
        previous = signal.signal(signal.SIGALRM, _alarm)
        signal.alarm(SECONDS)
    try:
        if format not in ("gzip", "bqm") and (b"\0" in data or not data.strip()):
            return None  # load() refuses these
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about the nodes of influence diagrams that are left out
            model = READERS[format](Source("fuzz", data))
        if isinstance(model, FactorGraph):
            _check(format, model)
    except FormatError as error:
        return "a message without its file" if not str(error) else None
    except Slow:
        return f"more than {SECONDS} s"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return traceback.format_exc()
    finally:
        if timed:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, previous)
    return None


def _check(format: str, model: FactorGraph) -> None:
    """A model that was read is sound, and written and read again it is the same."""
    for group in model.groups:
        group.check(model.domains)
    if format in WRITERS:
        again = READERS[format](Source("again", WRITERS[format](model).encode()))
        assert isinstance(again, FactorGraph)
        assert sorted(again.cards) == sorted(model.cards)
        assert sorted(table for _, table in _factors(again)) == sorted(table for _, table in _factors(model))
    if format in FORMATTERS:
        try:
            written = FORMATTERS[format](model)
        except IncompatibleError:
            return
        again = READERS[format](Source("again", written.encode()))
        assert isinstance(again, FactorGraph) and again.sites == model.sites
        # Factors that are only partly directed may be grouped anew.
        assert _factors(again) == _factors(model), written


def _factors(model: FactorGraph) -> list[tuple[list[int], bytes]]:
    found = []
    for group in model.groups:
        tables = group.log_tables(model.cards) if group.size else np.zeros((0, 1))
        tables = np.broadcast_to(tables, (group.size, *tables.shape[1:]))
        found += [(scope, table.tobytes()) for scope, table in zip(group.scopes.tolist(), tables, strict=True)]
    return sorted(found)


def campaign(format: str, seconds: float, seed: int) -> tuple[int, list[str]]:
    """Fuzz one reader; return how many files were tried and what was found."""
    rng = random.Random(f"{format} {seed}")
    pool = seeds(format)
    weights = [1 / (200 + len(data)) for data in pool]
    end = time.monotonic() + seconds
    tried, found = 0, dict[str, str]()
    while time.monotonic() < end:
        data = mutate(rng.choices(pool, weights)[0], rng, pool)
        tried += 1
        problem = attempt(format, data)
        if problem is not None:
            # One file per kind of failure, the smallest.
            kind = problem.strip().splitlines()[-1][:60] + "".join(problem.strip().splitlines()[-3:-1])
            name = f"{format}-{hashlib.sha1(kind.encode()).hexdigest()[:10]}"
            path = CORPUS / name
            if name not in found or path.stat().st_size > len(data):
                path.write_bytes(data)
            found[name] = problem
    return tried, list(found.values())


def main() -> int:
    """Run a campaign from the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=20.0, help="per reader")
    options.add_argument("--format", choices=sorted(READERS), action="append")
    options.add_argument("--rng", type=int, default=1)
    chosen = options.parse_args()
    CORPUS.mkdir(exist_ok=True)
    import resource  # there is none on Windows

    # What needs this much more memory is out of proportion to any of the seeds.
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (600 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    failures = 0
    for format in chosen.format or sorted(READERS):
        tried, found = campaign(format, 60 * chosen.minutes, chosen.rng)
        print(f"{format}: {tried:,} files, {len(found)} kinds of failure", flush=True)
        for problem in found:
            print(problem, flush=True)
        failures += len(found)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
