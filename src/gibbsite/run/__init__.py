"""Let it run: chains, blocks, checkpoints, and what is recorded."""

from gibbsite.run.record import BestState, Draws, Energy, Joint, Marginals, PairMoments

__all__ = ["BestState", "Draws", "Energy", "Joint", "Marginals", "PairMoments"]
