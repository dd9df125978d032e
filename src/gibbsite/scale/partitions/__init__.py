"""One run of one large model, spread over workers: each moves its own sites, and tells its neighbours.

``halo`` is who needs which states of whom, ``links`` how they travel, ``host`` a worker's share of a model
and what it does with it, ``serving`` the tasks that use it there, ``joining`` puts together what comes back,
``crew`` brings the shares to workers of a Dask cluster.
"""
