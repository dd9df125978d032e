"""Whether the effect of an intervention can be computed from data in which some sites are hidden, and how.

A network is a mapping of its sites to their parents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gibbsite.models.networks.relations import children_of, connected, reach

Parents = Mapping[str, Sequence[str]]


def find_adjustment(parents: Parents, cause: str, effect: str, hidden: set[str]) -> set[str] | None:
    """Return a set of sites to adjust for that has no smaller part, None if there is none.

    Examples
    --------
    >>> confounded = {"z": [], "x": ["z"], "y": ["z", "x"]}
    >>> find_adjustment(confounded, "x", "y", set()), find_adjustment(confounded, "x", "y", {"z"})
    ({'z'}, None)
    """
    children = children_of(parents)
    # sites on directed paths from cause to effect, and everything that they influence, must not be adjusted for
    cut = {site: [one for one in each if one != cause] for site, each in parents.items()}
    between = (reach([cause], children) - {cause}) & reach([effect], cut)
    forbidden = reach(between, children) | {cause, effect}
    rest = {site: cut[site] if site in between else list(each) for site, each in parents.items()}
    found = reach([cause, effect], parents) - forbidden - hidden

    def separates(given: set[str]) -> bool:
        return effect not in connected(rest, [cause], given)

    if not separates(found):
        return None
    for site in sorted(found):
        if separates(found - {site}):
            found = found - {site}
    return found


def is_identifiable(parents: Parents, cause: str, effect: str, hidden: set[str]) -> bool:
    """Tell whether P(effect | do(cause)) is determined by the distribution of the sites that are not hidden.

    Examples
    --------
    >>> hidden_cause = {"u": [], "x": ["u"], "y": ["u", "x"]}
    >>> front_door = {"u": [], "x": ["u"], "m": ["x"], "y": ["u", "m"]}
    >>> is_identifiable(hidden_cause, "x", "y", {"u"}), is_identifiable(front_door, "x", "y", {"u"})
    (False, True)
    """
    directed, joined = _project(parents, hidden)
    sites = frozenset(directed)
    return _identify(frozenset({effect}), frozenset({cause}), sites, directed, joined)


def _project(parents: Parents, hidden: set[str]) -> tuple[dict[str, set[str]], set[frozenset[str]]]:
    """Return the observed sites with their parents, and the pairs that have a hidden cause in common."""
    directed = {site: set(each) for site, each in parents.items()}
    joined: set[frozenset[str]] = set()
    for gone in sorted(hidden):
        children = [site for site in directed if gone in directed[site]]
        partners = {site for pair in joined if gone in pair for site in pair} - {gone}
        for child in children:
            directed[child] = (directed[child] - {gone}) | directed[gone]
            joined |= {frozenset({child, other}) for other in [*children, *partners] if other != child}
        joined = {pair for pair in joined if gone not in pair}
        del directed[gone]
    return directed, joined


def _identify(
    y: frozenset[str],
    x: frozenset[str],
    sites: frozenset[str],
    directed: dict[str, set[str]],
    joined: set[frozenset[str]],
) -> bool:
    """Run the algorithm ID of Shpitser and Pearl on the graph of some sites, without computing anything."""
    if not x:
        return True
    above = _above(y, sites, directed, frozenset())
    if above != sites:
        return _identify(y, x & above, above, directed, joined)
    idle = (sites - x) - _above(y, sites, directed, x)
    if idle:
        return _identify(y, x | idle, sites, directed, joined)
    parts = _components(sites - x, joined)
    if len(parts) > 1:
        return all(_identify(part, sites - part, sites, directed, joined) for part in parts)
    (part,) = parts
    whole = _components(sites, joined)
    if whole == [sites]:
        return False
    if part in whole:
        return True
    larger = next(each for each in whole if part < each)
    return _identify(y, x & larger, larger, directed, joined)


def _above(
    y: frozenset[str], sites: frozenset[str], directed: dict[str, set[str]], cut: frozenset[str]
) -> frozenset[str]:
    """Return the ancestors among some sites, without the edges into the sites of ``cut``."""
    found, left = set(y), list(y)
    while left:
        site = left.pop()
        for parent in (set() if site in cut else directed[site] & sites) - found:
            found.add(parent)
            left.append(parent)
    return frozenset(found)


def _components(sites: frozenset[str], joined: set[frozenset[str]]) -> list[frozenset[str]]:
    """Return the parts of some sites that hidden causes connect."""
    left, found = set(sites), []
    while left:
        part, new = set(), [min(left)]
        while new:
            site = new.pop()
            if site not in part:
                part.add(site)
                new += [other for pair in joined if site in pair for other in pair if other in left and other != site]
        left -= part
        found.append(frozenset(part))
    return found
