"""Models from and to the outside, one format per file, reader and writer together.

Every file of this folder is loaded, so that a new format is one file (docs/new_format.md); readers and
writers of single formats are listed below for those who want their further arguments.
"""

from __future__ import annotations

from gibbsite._common.loading import load_modules
from gibbsite.formats.bif import read_bif, write_bif
from gibbsite.formats.bqm_file import read_bqm, write_bqm
from gibbsite.formats.coo import read_coo, write_coo
from gibbsite.formats.edges import read_edges, write_edges
from gibbsite.formats.evidence import read_evidence
from gibbsite.formats.examples import EXAMPLES, example
from gibbsite.formats.files import read_model, write_model
from gibbsite.formats.objects.bqm import from_bqm, from_ising, from_qubo, to_bqm
from gibbsite.formats.objects.nx import from_networkx, to_networkx
from gibbsite.formats.objects.pgmpy import from_pgmpy
from gibbsite.formats.registry import registered_formats
from gibbsite.formats.rudy import read_rudy, write_rudy
from gibbsite.formats.stored import store_edges
from gibbsite.formats.uai import read_uai, write_uai
from gibbsite.formats.uai_evidence import read_uai_evidence, write_uai_evidence
from gibbsite.formats.uai_results import (
    read_uai_map,
    read_uai_mar,
    read_uai_pr,
    write_uai_map,
    write_uai_mar,
    write_uai_mmap,
    write_uai_pr,
)
from gibbsite.formats.xmlbif import read_xmlbif, write_xmlbif

load_modules(__name__)

FORMATS = tuple(registered_formats())
"""Names of the formats that `read_model` and `write_model` know."""

__all__ = [
    "EXAMPLES",
    "FORMATS",
    "example",
    "from_bqm",
    "from_ising",
    "from_networkx",
    "from_pgmpy",
    "from_qubo",
    "read_bif",
    "read_bqm",
    "read_coo",
    "read_edges",
    "read_evidence",
    "read_model",
    "read_rudy",
    "read_uai",
    "read_uai_evidence",
    "read_uai_map",
    "read_uai_mar",
    "read_uai_pr",
    "read_xmlbif",
    "store_edges",
    "to_bqm",
    "to_networkx",
    "write_bif",
    "write_bqm",
    "write_coo",
    "write_edges",
    "write_model",
    "write_rudy",
    "write_uai",
    "write_uai_evidence",
    "write_uai_map",
    "write_uai_mar",
    "write_uai_mmap",
    "write_uai_pr",
    "write_xmlbif",
]
