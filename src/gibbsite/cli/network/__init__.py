"""What the command line offers for networks: questions of a diagnosis, many cases of evidence, and scores."""
