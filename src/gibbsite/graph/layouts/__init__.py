"""Sites in another order than the model's, for updates of many at once."""
