"""Public names of this package, a line each; they are loaded when they are first used."""

from gibbsite.inference.importance import bound_log_z as bound_log_z
from gibbsite.inference.log_z.particles import AnnealedEstimate as AnnealedEstimate
from gibbsite.inference.log_z.particles import ParticleEstimate as ParticleEstimate
from gibbsite.inference.log_z.particles import annealed_importance as annealed_importance
from gibbsite.inference.log_z.particles import particle_log_z as particle_log_z
