"""One chain, spread over workers: each moves its own sites, or its own rungs, and tells the others.

Sites: ``halo`` is who needs which states of whom, ``host`` a worker's share of a model and what it does with
it, ``serving`` the tasks that use it there, ``draws`` what workers keep of draws for the client, ``joining``
puts together what comes back, ``executor`` brings the shares to workers of a Dask cluster. Rungs of tempered
chains: ``rungs`` is what a worker does, ``rung_crew`` brings it there. Both use ``links``, by which states
travel, and ``together``, tasks at the same time.
"""
