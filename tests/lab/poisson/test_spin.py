"""Functions of ``gibbsite.lab.poisson.spin`` on small inputs whose results are known."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import gibbsite as gs
from gibbsite.kernels.minibatch.factors import local_energies
from gibbsite.lab.poisson.spin import cell_probabilities, couplings, symmetric_divergence, unshifted_model


def test_couplings_returns_exp_gamma_d_2_between_all_pairs_of_sites_of_a_grid_and_zeros() -> None:
    assert round(float(2 * couplings().sum(axis=1).max()), 3) == 13.708


def test_unshifted_model_returns_the_model_with_factors_and_bounds_of_the_paper() -> None:
    assert round(local_energies(gs.graphs.compile_graph(unshifted_model())).largest, 3) == 13.708


def test_cell_probabilities_returns_the_probabilities_of_equal_cells_of_0_1_under() -> None:
    assert cell_probabilities(np.array([[1e-9, 2.0]]), 2).round(4).tolist() == [[0.5, 0.5], [0.2689, 0.7311]]


def test_symmetric_divergence_returns_kl_p_q_kl_q_p_of_counts_half_a_one_added() -> None:
    assert round(symmetric_divergence(np.array([[30, 10]]), np.array([[0.75, 0.25]])), 5) == 0.0002


def test_energies_of_continuous_models_need_no_kernel_to_be_loaded_first() -> None:
    script = """
import gibbsite as gs
from gibbsite.lab.poisson.spin import unshifted_model
print(gs.kernels.local_energies(gs.graphs.compile_graph(unshifted_model(4))).degree)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "15\n"
