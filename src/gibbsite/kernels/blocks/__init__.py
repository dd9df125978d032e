"""Many sites drawn jointly, each block from its exact conditional distribution given all other sites.

``gibbs`` is the kernel; ``tables`` lays the clique tables of blocks out, ``filtering`` passes over them,
``cover`` finds blocks, ``ties`` says which sites depend strongly on each other, ``strips`` draws half of a
lattice at a time. ``cutset`` is the kernel that draws few sites with all others summed out: ``cut`` chooses
them, ``messages`` keeps what the tree of the others says, ``collapsed`` makes the steps.
"""
