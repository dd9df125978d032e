"""Experiments of the DoGS paper.

Mitliagkas and Mackey (2017), Improving Gibbs sampler scan quality with DoGS. There is one file for each experiment;
``dobrushin`` has their common parts.
"""
