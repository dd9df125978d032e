"""Experiments of the herded Gibbs paper.

Chen, Bornn, de Freitas, Eskelin, Fang and Welling (2016), Herded Gibbs sampling. There is one file for each
experiment.
"""
