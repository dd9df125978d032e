"""Experiments of the DoGS paper.

Mitliagkas and Mackey (2017), Improving Gibbs sampler scan quality with DoGS: one file for each experiment;
``dobrushin`` is what they share.
"""
