"""What readers and writers share: text, numerals, XML, tables.

``text`` opens files and tells positions in them, ``numerals`` and ``decimals`` read and write numbers,
``xml`` and ``bif_text`` read markup, ``plain_json`` writes JSON.
"""
