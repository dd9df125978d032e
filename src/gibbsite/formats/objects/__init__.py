"""Models from and to objects of other Python libraries.

``bqm`` and ``dimod_models`` are for dimod and dictionaries, ``nx`` for networkx, ``pgmpy`` and ``pyagrum`` for Bayesian
networks. These libraries are imported only by functions that return objects of them.
"""
