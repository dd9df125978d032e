"""Functions of users in compiled models: their bounds, gradients, and what to say where they fail."""
