"""What readers and writers share: text, numerals, XML, tables."""
