"""Herded Gibbs: conditionals followed by counting instead of by chance.

``herded`` is the kernel, ``herding`` the rule, ``keys`` what weights are told apart by, ``weight_table``
where they are kept, ``theorem`` and ``remarks`` what is guaranteed.
"""
