"""The BUGS language: programs as trees, expressions as text, and files of values."""
