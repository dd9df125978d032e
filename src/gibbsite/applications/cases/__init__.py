"""Many cases of evidence at once: answers for each, and how well a model predicts them."""
