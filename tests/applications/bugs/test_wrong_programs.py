"""Wrong programs and data are refused in a sentence, which names line and column if the text is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from gibbsite.applications.bugs import read_bugs
from gibbsite.errors import GibbsiteError
from tests.campaigns.bugs_programs import run_seed

NAN = float("nan")
# relations, data, and whether the place in the text is named; otherwise no state has a positive density
WRONG: list[tuple[str, dict[str, Any], bool]] = [
    ("x ~ dnorm(alpha,1)", {}, True),
    ("x[1] ~ dnorm(0,1)\n y <- x[k]", {}, True),
    ("x ~ dnorm(y,1)\n y <- x+1", {}, True),
    ("x ~ dnorm(0,1)\n x ~ dnorm(1,1)", {}, True),
    ("for(i in 1:3){ x ~ dnorm(0,1)}", {}, True),
    ("x <- 3\n z~dnorm(x,1)", {"x": 2}, True),
    ("x ~ dnorm(y[4],1)", {"y": [1, 2, 3]}, True),
    ("x ~ dnorm(y[0],1)", {"y": [1, 2, 3]}, True),
    ("for(i in 1:4) { y[i] ~ dnorm(x,1) }\n x ~ dnorm(0,1)", {"y": [1, 2, 3]}, True),
    ("x ~ dnorm(y[1.5],1)", {"y": [1, 2, 3]}, True),
    ("x ~ dnorm(y[1,1],1)", {"y": [1, 2, 3]}, True),
    ("x ~ dnorm(y,1)", {"y": [1, 2, 3]}, True),
    ("x ~ dfoo(1)", {}, True),
    ("x ~ dnorm(foo(1),1)", {}, True),
    ("x ~ dnorm(1)", {}, True),
    ("x ~ dnorm(pow(1),1)", {}, True),
    ("x ~ dnorm(1,1\n y <- 2", {}, True),
    ("", {}, True),
    ("y ~ dbern(p)\n p ~ dbeta(1,1)", {"y": 2}, True),
    ("y ~ dgamma(p,1)\n p ~ dexp(1)", {"y": -2}, False),
    ("y ~ dpois(p)\n p ~ dexp(1)", {"y": 1.5}, True),
    ("y ~ dnorm(0, 1)\n a ~ dflat()", {"y": 1.0}, True),
    ("y ~ dgamma(a, 1)\n a ~ dexp(1)", {"y": -1.0}, True),
    ("y ~ dbin(p,4)\n p ~ dbeta(1,1)", {"y": 5}, False),
    ("y ~ dunif(0,p)\n p ~ dunif(0,1)", {"y": 3}, False),
    ("y ~ dcat(p[])\n p[1:2] ~ ddirch(a[])", {"y": 3, "a": [1, 1]}, False),
    ("y[1:2] ~ dmulti(p[],3)\n p[1:2] ~ ddirch(a[])", {"y": [1, 1], "a": [1, 1]}, False),
    ("x~dnorm(0,-1)", {}, False),
    ("x~dnorm(0,0)", {}, False),
    ("x~dgamma(0,1)", {}, False),
    ("x~dunif(2,1)", {}, False),
    ("x~dnorm(y,1)", {"y": NAN}, True),
    ("for(i in 1:2){ z[i]~dnorm(x*y[i],1)}\n x~dnorm(0,1)", {"y": [1, NAN], "z": [1, 2]}, True),
    ("k ~ dpois(3)\n for(i in 1:k){ x[i]~dnorm(0,1)}", {}, True),
    ("x<-inverse(y)\n z~dnorm(0,1)", {"y": [[1, 2, 3], [2, 1, 1]]}, True),
    ("x[1:2]<-y%*%w\n z~dnorm(0,1)", {"y": [[1, 2, 3], [2, 1, 1]], "w": [1, 2]}, True),
    ("x[1:2]~dmnorm(m,S)", {"m": [0, 0], "S": [[1, 2], [2, 1]]}, False),
    ("y[1]~dnorm(0,1)\n y[3]~dnorm(0,1)\n x <- sum(y[1:3])", {}, True),
    ("x[1:3]~dmnorm(m,S)", {"m": [0, 0], "S": [[1, 0], [0, 1]]}, True),
    ("x<-inprod(y,w)\n z~dnorm(0,1)", {"y": [1, 2, 3], "w": [1, 2]}, True),
    ("x<-y*w\n z~dnorm(0,1)", {"y": [1, 2, 3], "w": [1, 2]}, True),
    ("log(x) ~ dnorm(0,1)", {}, True),
    ("for(i in 3:1) { x[i] ~ dnorm(0,1) }", {}, True),
    ("if (1) { x ~ dnorm(0,1) }", {}, True),
    ("y ~ dnorm(1,1)", {"y": 2}, True),
    ("x[1:2,1:2] ~ dwish(R,1)", {"R": [[1, 0], [0, 1]]}, False),
    ("x[1:2,1:2] ~ dwish(R,2)", {"R": [[1, 2], [2, 1]]}, False),
    ("x[1:2] ~ ddirch(a)", {"a": [-1, 1]}, False),
    ("x[1:2] ~ ddirch(a)", {"a": [0, 0]}, False),
    ("x ~ dcat(p)", {"p": [-1, 2]}, False),
    ("x <- log(-1)\n z~dnorm(x,1)", {}, True),
    ("x <- 1/0\n z~dnorm(x,1)", {}, False),
    ("x ~ dnorm(sqrt(-1),1)", {}, True),
    ("x ~ dcat(p) T(1,2)", {"p": [1, 1]}, True),
    ("x[1:2] ~ dnorm(0,1)", {}, True),
    ("x[i] ~ dnorm(0,1)", {}, True),
    ("for (i in 1:2) { for (i in 1:2) { x[i] ~ dnorm(0,1) } }", {}, True),
    ("x[-1] ~ dnorm(0,1)", {}, True),
    ("x ~ dnorm(0,1)\n y <- x[1,2]", {}, True),
    ("x[1] ~ dnorm(0,1)\n y <- x[3]", {}, True),
    ("y <- mean(3,4)\n x~dnorm(y,1)", {}, True),
    ("x ~ dnorm(0,1)\n y <- sort(x) + 1", {}, True),
    ("x[1:3] <- c(1,2)\n z~dnorm(x[1],1)", {}, True),
    ("u[1:2] ~ dmulti(p[], 3)", {"p": [0.5, 0.5]}, True),
    ("x ~ dnorm(ifelse(1,2),1)", {}, True),
    ("x ~ dnorm(y[],1)", {"y": [1, 2]}, True),
    ("x ~ dnorm(max(),1)", {}, True),
    ("x ~ dnorm(length(),1)", {}, True),
    ("x ~ dnorm(rep(1),1)", {}, True),
    ("x ~ dnorm(seq(1),1)", {}, True),
    ("x ~ dnorm(inverse(3),1)", {}, True),
    ("x ~ dnorm(y[,1],1)", {"y": [[1, 2], [3, 4]]}, True),
    ("x ~ dnorm(logdet(y),1)", {"y": [[1, 2, 3], [1, 2, 3]]}, True),
    ("x ~ dnorm(interp.lin(1,y,w),1)", {"y": [1, 2], "w": [1]}, True),
    ("x ~ dnorm(y %*% w, 1)", {"y": 3, "w": 4}, True),
    ("for (i in 1:1e12) { x[i] ~ dnorm(0,1) }", {}, True),
    ("for (i in 1:y) { x[i] ~ dnorm(0,1) }", {"y": [1, 2]}, True),
    ("x[1000000000000] ~ dnorm(0,1)", {}, True),
    ("x ~ dnorm(0,1)\n y[1:2] <- t(x)", {}, True),
    ("x[1:2] ~ dmnorm(m,T)", {"m": [0, 1], "T": [[1, 0.5], [0.2, 1]]}, True),
    ("W[1:2,1:2] ~ dwish(R,3)", {"R": [[1, 0.5], [0.2, 1]]}, True),
    ("k ~ dpois(2)\n y ~ dnorm(m[k+1],1)", {"m": [0, 1, 2], "y": 1}, True),
    ("k ~ dbern(0.5)\n y ~ dnorm(m[k],1)", {"m": [0, 1, 2], "y": 1}, True),
    ("k ~ dcat(p)\n j <- k + 1\n y ~ dnorm(m[j],1)", {"m": [0, 1], "p": [0.5, 0.5], "y": 1}, True),
    ("k ~ dbin(0.5,4) T(0,3)\n y ~ dcat(m[k,])", {"m": [[1, 2], [2, 3], [4, 4]], "y": 1}, True),
]


@pytest.mark.parametrize(("text", "data", "placed"), WRONG)
def test_refused(text: str, data: dict[str, Any], placed: bool) -> None:
    with pytest.raises(GibbsiteError) as caught:
        read_bugs(f"model {{\n {text}\n}}", data).sample(sweeps=20, chains=2, rng=1, progress=False)
    message = str(caught.value)
    if placed and "no unknowns" not in message:
        assert message.startswith("Line "), message
        assert "column" in message
    assert len(message.splitlines()) == 1
    assert message.endswith((".", "?")), message


def test_the_table_is_long() -> None:
    assert len(WRONG) >= 50


@pytest.mark.parametrize("seed", [0, 7, 24, 39, 47, 48, 139, 144])
def test_random_and_damaged_programs(seed: int) -> None:
    """Log-densities agree with SciPy, and damaged programs are refused in a sentence (a part of the campaign)."""
    assert run_seed(seed, check=False)["problems"] == []
