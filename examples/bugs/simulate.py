"""Write the data of the models in this folder: ``python examples/bugs/simulate.py``.

Coal mining, the Nile and the eight schools are published figures; all others are drawn here, from a fixed seed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

FOLDER = Path(__file__).parent

#: Disasters in British coal mines a year, 1851 to 1961 (Jarrett, 1979).
COAL = "454014340633402633545314415534252234213221111300101100310322011101010002100011023311211112420014000100000100101"

#: Yearly flow of the Nile at Aswan, 1871 to 1970, in 10^8 cubic metres (Durbin and Koopman, 2001).
NILE = """
1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100 1210 1150 1250 1260
1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456 824 702 1120 1100 832 764 821 768 845 864
862 698 845 744 796 1040 759 781 865 845 944 984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890 744 749
838 1050 918 986 797 923 975 815 1020 906 901 1170 912 746 919 718 714 740
"""


def occupancy(rng: Generator) -> dict[str, Any]:
    """Draw three visits to each of 80 sites."""
    sites, visits = 80, 3
    forest = rng.normal(size=sites).round(2)
    present = rng.random(sites) < 1 / (1 + np.exp(-0.4 - 1.2 * forest))
    seen = present[:, None] & (rng.random((sites, visits)) < 0.45)
    return {"sites": sites, "visits": visits, "forest": forest, "seen": seen.astype(int)}


def capture(rng: Generator) -> dict[str, Any]:
    """Draw histories of 100 marked animals on six occasions."""
    animals, occasions, survival, recapture = 100, 6, 0.75, 0.6
    first = rng.integers(1, occasions, animals)
    caught = np.full((animals, occasions), np.nan)
    alive = np.full((animals, occasions), np.nan)
    for i, begin in enumerate(first):
        living, last = True, begin - 1
        caught[i, last] = 1
        for t in range(begin, occasions):
            living = living and rng.random() < survival
            caught[i, t] = float(living and rng.random() < recapture)
            last = t if caught[i, t] else last
        alive[i, begin : last + 1] = 1  # seen later, hence alive until then
    return {"animals": animals, "occasions": occasions, "first": first, "caught": caught, "alive": alive}


def hidden_markov(rng: Generator) -> dict[str, Any]:
    """Draw 150 counts of two states that last."""
    length, rates = 150, (1.0, 5.0)
    state = np.zeros(length, dtype=int)
    for t in range(1, length):
        state[t] = 1 - state[t - 1] if rng.random() < 0.08 else state[t - 1]
    return {"T": length, "count": rng.poisson(np.take(rates, state)), "prior": [[4, 1], [1, 4]]}


def mixture(rng: Generator) -> dict[str, Any]:
    """Draw 120 numbers of two groups."""
    group = rng.random(120) < 0.35
    return {"N": 120, "y": np.where(group, rng.normal(80, 6, 120), rng.normal(55, 6, 120)).round(1)}


def change_point(_: Generator) -> dict[str, Any]:
    """Return the published counts of disasters."""
    return {"T": len(COAL), "disasters": [int(each) for each in COAL]}


def item_response(rng: Generator) -> dict[str, Any]:
    """Draw the answers of 150 persons to eight items."""
    persons, items = 150, 8
    ability = rng.normal(size=(persons, 1))
    steep, hard = rng.lognormal(0.0, 0.4, items), np.linspace(-1.5, 1.5, items)
    correct = rng.random((persons, items)) < 1 / (1 + np.exp(-steep * (ability - hard)))
    return {"persons": persons, "items": items, "correct": correct.astype(int)}


def local_level(_: Generator) -> dict[str, Any]:
    """Return the published flow of the Nile."""
    flow = [int(each) for each in NILE.split()]
    return {"T": len(flow), "flow": flow}


def meta_analysis(_: Generator) -> dict[str, Any]:
    """Return the published effects of eight schools (Rubin, 1981)."""
    return {"J": 8, "effect": [28, 8, -3, 7, -1, 1, 18, 12], "se": [15, 10, 16, 11, 9, 11, 10, 18]}


def survival(rng: Generator) -> dict[str, Any]:
    """Draw the times of 90 patients, of whom some are still in the study at its end."""
    treated = np.arange(90) % 2
    drawn = (rng.exponential(size=90) / np.exp(-3.0 - 0.8 * treated)) ** (1 / 1.4)
    end = rng.uniform(5, 20, 90).round(2)
    over = drawn > end
    time = np.where(over, np.nan, drawn.round(3))
    return {"N": 90, "treated": treated, "time": time, "end": end, "over": over.astype(int)}


def missing_data(rng: Generator) -> dict[str, Any]:
    """Draw 100 cases and hide a fifth of the covariate and a tenth of the outcome."""
    z = rng.normal(size=100).round(2)
    x = (1 + 0.7 * z + rng.normal(0, 0.8, 100)).round(2)
    y = (2 + 1.5 * x - 1.0 * z + rng.normal(0, 1.0, 100)).round(2)
    x[rng.random(100) < 0.2] = np.nan
    y[rng.random(100) < 0.1] = np.nan
    return {"N": 100, "x": x, "y": y, "z": z}


#: Each model with what gives its data.
MODELS: dict[str, Callable[[Generator], dict[str, Any]]] = {
    "occupancy": occupancy,
    "capture": capture,
    "hidden-markov": hidden_markov,
    "mixture": mixture,
    "change-point": change_point,
    "item-response": item_response,
    "local-level": local_level,
    "meta-analysis": meta_analysis,
    "survival": survival,
    "missing-data": missing_data,
}


def plain(values: Any) -> Any:
    """Return numbers as JSON has them, with null for what is missing."""
    if isinstance(values, np.ndarray):
        return plain(values.tolist())
    if isinstance(values, list):
        return [plain(each) for each in values]
    if isinstance(values, float):
        return None if np.isnan(values) else int(values) if values.is_integer() else values
    return values


def main() -> None:
    """Write one file for each model."""
    for place, (name, draw) in enumerate(MODELS.items()):
        data = {key: plain(values) for key, values in draw(np.random.default_rng([20, place])).items()}
        lines = ",\n".join(f'  "{key}": {json.dumps(values)}' for key, values in data.items())
        (FOLDER / f"{name}-data.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
