"""Reports: one file that a browser opens, with the answer, how sure it is, pictures, and the numbers as JSON."""
