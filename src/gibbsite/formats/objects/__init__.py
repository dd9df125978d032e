"""Models from and to objects of other Python libraries.

``bqm`` is for dimod and dictionaries, ``nx`` for networkx, ``pgmpy`` for its networks. None of these
libraries is imported before an object of it is asked for.
"""
