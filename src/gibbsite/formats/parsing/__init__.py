"""Functions that readers and writers share.

``text`` opens files and locates errors in them, ``numerals`` reads and writes numbers, ``xml`` and ``bif_text`` read
markup, ``chance_nodes`` makes models of influence diagrams, ``edge_lists`` reads long lists of edges, ``plain_json``
writes JSON.
"""
