"""Random programs in the BUGS language, and damaged ones.

``python -m tests.campaigns.bugs_programs OUT [--seeds FIRST:LAST] [--check EVERY]`` makes a random program with data for
each seed, and a Python function of its joint density, which is written at the same time from the densities of SciPy.
The log-densities must agree, and a short run must succeed; of every few programs, the updates are checked by
``gibbsite.testing.check_model``. Then text, data and initial values are damaged at random: what is not accepted must be
refused with one sentence, in a few seconds. ``OUT`` keeps a line for each seed; seeds that are there are left out.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

from gibbsite.applications.bugs import read_bugs
from gibbsite.applications.bugs.language.rdump import parse_dump
from gibbsite.applications.bugs.starts import log_density
from gibbsite.errors import GibbsiteError
from gibbsite.results.verdict.criteria import Criteria
from gibbsite.testing import check_model
from tests.campaigns.journal import read_rows

Value = Callable[[dict[str, Any], int], Any]
N, GROUPS, SECONDS = 5, 3, 60

# distributions of a number: the parameters, and what SciPy calls it
LAWS: dict[str, tuple[str, Callable[..., Any]]] = {
    "dnorm": ("rp", lambda m, t: stats.norm(m, t**-0.5)),
    "dlogis": ("rp", lambda m, t: stats.logistic(m, 1 / t)),
    "ddexp": ("rp", lambda m, t: stats.laplace(m, 1 / t)),
    "dt": ("rpp", lambda m, t, k: stats.t(k + 1.0, m, t**-0.5)),
    "dgamma": ("pp", lambda a, b: stats.gamma(a, scale=1 / b)),
    "dexp": ("p", lambda a: stats.expon(scale=1 / a)),
    "dweib": ("pp", lambda v, s: stats.weibull_min(v, scale=s ** (-1 / v))),
    "dlnorm": ("rp", lambda m, t: stats.lognorm(t**-0.5, scale=np.exp(m))),
    "dbeta": ("pp", lambda a, b: stats.beta(a, b)),
    "dpois": ("p", lambda m: stats.poisson(m)),
    "dbern": ("q", lambda p: stats.bernoulli(p)),
    "dbin": ("qn", lambda p, n: stats.binom(int(n), p)),
    "dnegbin": ("qp", lambda p, r: stats.nbinom(r, p)),
}
PRIORS = {"r": ("dnorm", "dlogis", "ddexp", "dt"), "p": ("dgamma", "dexp", "dweib", "dlnorm"), "q": ("dbeta",)}


class Program:
    """A random program: its text, its data, values of its unknowns, and a function of its log-density."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.scalars: dict[str, list[str]] = {"r": [], "p": [], "q": []}
        self.vectors: dict[str, list[str]] = {"r": [], "p": [], "q": []}
        self.values: dict[str, Any] = {"x": self.rng.normal(size=N).round(2), "g": self.rng.integers(1, GROUPS + 1, N)}
        self.terms: list[Callable[[dict[str, Any]], float]] = []
        self.known = {"x", "g"}
        for k in range(int(self.rng.integers(2, 5))):
            kind = "rpq"[int(self.rng.choice(3, p=[0.45, 0.35, 0.2]))]
            self._unknown(f"{kind}{k}", kind, 0)
        if self.rng.random() < 0.7:
            self._unknown("e", "r", GROUPS)
        if self.rng.random() < 0.4:
            self._states()
        if self.rng.random() < 0.5:
            self._deterministic()
        for k in range(int(self.rng.integers(1, 4))):
            self._unknown(f"y{k}", "", N)
        self.text = "model {\n" + "\n".join(self.rng.permutation(np.array(self.lines, object))) + "\n}"
        self.data = {name: np.array(self.values[name], float) for name in sorted(self.known)}
        for name, array in self.data.items():
            if name[0] == "y" and self.rng.random() < 0.2:
                array[int(self.rng.integers(N))] = np.nan

    def _pick(self, given: list[Any]) -> Any:
        return given[int(self.rng.integers(len(given)))]

    def expression(self, kind: str, looped: bool, depth: int = 2) -> tuple[str, Value]:
        """Return a random expression of a kind: real (r), positive (p), probability (q) or number of trials (n)."""
        rng = self.rng
        if kind == "n":
            size = int(rng.integers(1, 9))
            return str(size), lambda v, i: size
        if depth <= 0 or rng.random() < 0.3:
            return self._leaf(kind, looped)
        if kind == "r":
            one, f = self.expression("r", looped, depth - 1)
            two, h = self.expression("r", looped, depth - 1)
            number = float(rng.integers(-3, 4)) / 2
            return self._pick(
                [
                    (f"{one} + {two}", lambda v, i: f(v, i) + h(v, i)),
                    (f"({one}) - ({two})", lambda v, i: f(v, i) - h(v, i)),
                    (f"{number} * ({one})", lambda v, i: number * f(v, i)),
                    (f"sin({one}) * ({two})", lambda v, i: np.sin(f(v, i)) * h(v, i)),
                    (f"ifelse({one} > {number}, {two}, -1)", lambda v, i: h(v, i) if f(v, i) > number else -1.0),
                    (f"max({one}, {two})", lambda v, i: max(f(v, i), h(v, i))),
                    (f"-({one})^2 / 4", lambda v, i: -(f(v, i) ** 2) / 4),
                ]
            )
        if kind == "p":
            real, f = self.expression("r", looped, depth - 1)
            one, h = self.expression("p", looped, depth - 1)
            return self._pick(
                [
                    (f"exp(0.3 * ({real}))", lambda v, i: np.exp(0.3 * f(v, i))),
                    (f"0.5 + abs({real})", lambda v, i: 0.5 + abs(f(v, i))),
                    (f"sqrt({one})", lambda v, i: np.sqrt(h(v, i))),
                    (f"pow({one}, -2) + 0.1", lambda v, i: h(v, i) ** -2.0 + 0.1),
                    (f"2 * ({one})", lambda v, i: 2 * h(v, i)),
                ]
            )
        real, f = self.expression("r", looped, depth - 1)
        return self._pick(
            [
                (f"ilogit({real})", lambda v, i: special.expit(f(v, i))),
                (f"phi({real})", lambda v, i: special.ndtr(f(v, i))),
                (f"icloglog({real})", lambda v, i: -np.expm1(-np.exp(f(v, i)))),
            ]
        )

    def _leaf(self, kind: str, looped: bool) -> tuple[str, Value]:
        number = {"r": float(self.rng.integers(-2, 3)), "p": float(self.rng.integers(1, 4)), "q": 0.3}[kind]
        leaves: list[tuple[str, Value]] = [(f"{number:g}", lambda v, i: number)]
        leaves += [(name, lambda v, i, name=name: v[name]) for name in self.scalars[kind]] * 3
        if looped:
            leaves += [(f"{name}[i]", lambda v, i, name=name: v[name][i]) for name in self.vectors[kind]] * 2
            if kind == "r":
                leaves.append(("x[i]", lambda v, i: v["x"][i]))
                if "e" in self.values:
                    leaves += [("e[g[i]]", lambda v, i: v["e"][v["g"][i] - 1])] * 2
                if "k" in self.values:
                    leaves += [("w[k[i]]", lambda v, i: (-1.0, 1.5)[int(v["k"][i]) - 1])] * 3
        return self._pick(leaves)

    def _unknown(self, name: str, kind: str, size: int) -> None:
        """Add a number or a vector with a distribution; without a kind, it is observed and of any distribution."""
        looped = kind == "" and size == N
        distribution = self._pick(list(PRIORS[kind]) if kind else list(LAWS))
        parameters, law = LAWS[distribution]
        depth = 2 if looped else 1 if size else 0
        made = [self.expression(each, looped, depth) for each in parameters]
        given = [text for text, _ in made]
        if distribution == "dt":
            given[2] += " + 1"
        functions = [function for _, function in made]
        index, cut, rng = "[i]" if size else "", "", self.rng
        low, high = -np.inf, np.inf
        if kind in ("r", "p") and not size and rng.random() < 0.15:
            low, high, cut = 0.2, 3.0, " T(0.2, 3)"
        line = f"{name}{index} ~ {distribution}({', '.join(given)}){cut}"
        self.lines.append(f"for (i in 1:{size}) {{ {line} }}" if size else line)
        drawn = np.empty(max(size, 1))
        for i in range(drawn.size):
            one = law(*(function(self.values, i) for function in functions))
            drawn[i] = one.ppf(rng.uniform(one.cdf(low), one.cdf(high))) if cut else one.rvs(random_state=rng)
        discrete = distribution in ("dpois", "dbern", "dbin", "dnegbin")

        def term(v: dict[str, Any]) -> float:
            total = 0.0
            for i in range(drawn.size):
                one = law(*(function(v, i) for function in functions))
                x = v[name][i] if size else v[name]
                total += float(one.logpmf(x) if discrete else one.logpdf(x))
                if cut:
                    total -= float(np.log(one.cdf(high) - one.cdf(low))) if low <= x <= high else np.inf
            return total

        self.terms.append(term)
        self.values[name] = drawn if size else float(drawn[0])
        if looped:
            self.known.add(name)
        elif not size:
            self.scalars[kind].append(name)

    def _states(self) -> None:
        """Add states that choose a number: independent, or a chain."""
        p = np.array([[0.7, 0.3], [0.4, 0.6]])
        k = np.ones(N)
        chained = bool(self.rng.random() < 0.5)
        for i in range(N):
            k[i] = 1.0 + self.rng.choice(2, p=p[int(k[i - 1]) - 1 if chained and i else 0])
        first = "k[1] ~ dcat(P[1, ])" if chained else f"for (i in 1:{N}) {{ k[i] ~ dcat(P[1, ]) }}"
        self.lines.append(first + (f"  for (i in 2:{N}) {{ k[i] ~ dcat(P[k[i - 1], ]) }}" if chained else ""))
        self.values.update(k=k, P=p, w=np.array([-1.0, 1.5]))
        self.known |= {"P", "w"}

        def term(v: dict[str, Any]) -> float:
            rows = [int(v["k"][i - 1]) - 1 if chained and i else 0 for i in range(N)]
            return float(sum(np.log(p[row, int(each) - 1]) for row, each in zip(rows, v["k"], strict=True)))

        self.terms.append(term)

    def _deterministic(self) -> None:
        kind = self._pick(["r", "p", "q"])
        text, function = self.expression(kind, True)
        name, link = f"d{kind}", {"r": "", "p": "log", "q": "logit"}[kind]
        inner: Value = function
        if link and self.rng.random() < 0.5:
            text, real = self.expression("r", True)
            inverse = {"log": np.exp, "logit": special.expit}[link]
            self.lines.append(f"for (i in 1:{N}) {{ {link}({name}[i]) <- 0.5 * ({text}) }}")
            inner = lambda v, i: inverse(0.5 * real(v, i))  # noqa: E731
        else:
            self.lines.append(f"for (i in 1:{N}) {{ {name}[i] <- {text} }}")
        self.values[name] = _Computed(self.values, inner)
        self.vectors[kind].append(name)

    def log_density(self, values: dict[str, Any]) -> float:
        """Return the joint log-density by SciPy."""
        complete = dict(values)
        for name, each in self.values.items():
            if isinstance(each, _Computed):
                complete[name] = _Computed(complete, each.function)
        return sum(term(complete) for term in self.terms)


class _Computed:
    def __init__(self, values: dict[str, Any], function: Value) -> None:
        self.values, self.function = values, function

    def __getitem__(self, i: int) -> Any:
        return self.function(self.values, i)


def compare(program: Program) -> str:
    """Return what is wrong with the log-density of a program, if anything."""
    model = read_bugs(program.text, program.data)
    for turn in range(2):
        given = {name: each for name, each in program.values.items() if not isinstance(each, _Computed)}
        if turn:  # some other state
            for name, each in given.items():
                if name not in program.known and name != "k":
                    given[name] = each * program.rng.uniform(0.8, 1.1) if name[0] != "q" else each**1.2
        places = model.start_values.copy()
        for name, each in given.items():
            if name in model.assembly.offset:
                begin, flat = model.assembly.offset[name], np.asarray(each, float).ravel(order="F")
                part = places[begin : begin + flat.size]
                part[:] = np.where(np.isnan(part), flat, part)
        ours, theirs = log_density(model, places), program.log_density(given)
        if not (ours == theirs or theirs == np.inf or abs(ours - theirs) < 1e-7 * (1.0 + abs(theirs))):
            return f"log-density {ours:.10g}, and {theirs:.10g} by SciPy"
    return ""


def damaged(program: Program) -> tuple[Any, Any, Any]:
    """Return text, data and initial values, one of them damaged."""
    rng, text = program.rng, program.text
    data: dict[str, Any] = {name: each.copy() for name, each in program.data.items()}
    inits: Any = {name: program.values[name] for name in program.scalars["r"] + program.scalars["p"]}
    where = rng.random()
    if where < 0.6:
        for _ in range(int(rng.integers(1, 4))):
            at, what = int(rng.integers(len(text))), rng.random()
            if what < 0.4:
                text = text[:at] + text[at + int(rng.integers(1, 4)) :]
            elif what < 0.7:
                pieces = [
                    "[",
                    "]",
                    "(",
                    ")",
                    "~",
                    "<-",
                    ",",
                    "1:0",
                    "T(",
                    "NA",
                    "1e999",
                    "\u00e9",
                    "for",
                    "}",
                    "{",
                    "%*%",
                    "\n",
                    "0",
                ]
                text = text[:at] + program._pick(pieces) + text[at:]
            else:
                other = int(rng.integers(len(text)))
                text = text[:at] + text[other : other + 8] + text[at:]
    elif where < 0.85:
        name = program._pick(sorted(data))
        data[name] = program._pick(
            [
                np.nan,
                "a",
                [],
                [[1, 2], [3]],
                data[name][:-1],
                -data[name],
                data[name] * np.nan,
                None,
                1e300,
                {"a": 1},
                np.inf,
            ]
        )
        if rng.random() < 0.3:
            del data[name]
    else:
        name = program._pick([*inits, "nothing", "x", "y0"])
        inits[name] = program._pick([np.nan, -1.0, [1, 2], "a", None, np.inf, 1e308, [[1.0]]])
    return text, data, inits


def attempt(text: Any, data: Any, inits: Any) -> str:
    """Return what is wrong with how a damaged program is treated: any error that is not one sentence, or none."""
    try:
        model = read_bugs(text, data)
        model.sample(
            sweeps=4, warmup=2, chains=1, rng=1, inits=inits, progress=False, criteria=Criteria(dispersed_starts=False)
        )
    except GibbsiteError as error:
        message = str(error)
        return "" if len(message.splitlines()) == 1 and message.endswith((".", "?")) else f"message: {message!r}"
    return ""


def run_seed(seed: int, check: bool) -> dict[str, Any]:
    """Return what is wrong with the program of a seed and with damaged copies of it."""

    def late(*_: Any) -> None:
        raise TimeoutError

    problems: list[str] = []
    subject: Any = ""
    previous = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            program = Program(seed)
            subject = (program.text, {name: each.tolist() for name, each in program.data.items()})
            if found := compare(program):
                problems.append(found)
            if found := attempt(program.text, program.data, None):
                problems.append(found)
            if check:
                report = check_model(read_bugs(program.text, program.data))
                problems += [] if report.passed else [str(report)]
            for _ in range(4):
                subject = damaged(program)
                if found := attempt(*subject):
                    problems.append(f"{found} for {subject!r}")
            dump = "".join(f"{name} <- c({', '.join(map(str, each.ravel()))})\n" for name, each in program.data.items())
            at = int(program.rng.integers(len(dump)))
            subject = dump[:at] + program._pick(["(", "<-", "f(x)", "'", "structure(", "NULL", "\\", "1:"]) + dump[at:]
            try:
                parse_dump(subject, "data.R")
            except GibbsiteError as error:
                if len(str(error).splitlines()) != 1:
                    problems.append(f"message: {error}")
    except TimeoutError:
        problems.append(f"more than {SECONDS} seconds: {subject!r}")
    except Exception:
        problems.append(f"{traceback.format_exc()} for {subject!r}")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    return {"seed": seed, "checked": check, "problems": problems}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", default="0:1000")
    parser.add_argument("--check", type=int, default=50)
    given = parser.parse_args(arguments)
    first, last = map(int, given.seeds.split(":"))
    done = {row["seed"] for row in read_rows(given.out)}
    wrong = 0
    with given.out.open("a") as file:
        for seed in range(first, last):
            if seed in done:
                continue
            row = run_seed(seed, seed % given.check == 0)
            file.write(json.dumps(row) + "\n")
            file.flush()
            wrong += bool(row["problems"])
            for problem in row["problems"]:
                print(f"{seed}: {problem}", flush=True)
    print(f"{wrong} of {last - first} seeds with problems.")


if __name__ == "__main__":
    main(sys.argv[1:])
