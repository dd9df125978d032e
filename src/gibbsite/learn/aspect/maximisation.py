"""Expectation maximisation for aspect models.

A token of document d has topic a with probability theta[d, a], and given the topic, its words of every kind have the
probabilities beta. Responsibilities are P(a | d, words) ~ theta[d, a] * (product over kinds of beta[word, a]). The
objective is the log-likelihood plus ``smoothing`` times the sum of all log(theta) of topics that a document may have
and of all log(beta): the log-posterior with Dirichlet priors. Both steps of EM increase it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints
from gibbsite._numba.jit import compiled_loop
from gibbsite.learn.aspect.bags import Bags


class Tokens(NamedTuple):
    """Tokens for compiled code."""

    first: Ints  # (documents + 1,): where the tokens of a document begin
    rows: Ints  # (tokens, kinds): rows of the table of words, which lists the words of one kind after another
    times: Floats  # (tokens,): how often a token occurs
    begin: Ints  # (documents + 1,): where the topics of a document begin
    topic: Ints  # topics that documents may have


class Aspects(NamedTuple):
    """Parameters of an aspect model."""

    theta: Floats  # (documents, topics): probabilities of topics
    beta: Floats  # (words of all kinds, topics): probabilities of words; each kind sums to 1 in every column


class Ascent(NamedTuple):
    """The result of EM, and the values of the objective."""

    aspects: Aspects
    values: list[float]


def make_tokens(bags: Bags, offsets: Ints, allowed: Bools) -> Tokens:
    """Return tokens for compiled code; the words of each kind begin at ``offsets``."""
    begin = np.concatenate([[0], np.cumsum(allowed.sum(axis=1))]).astype(np.int64)
    return Tokens(bags.first, bags.words + offsets[:-1], bags.times, begin, np.nonzero(allowed)[1].astype(np.int64))


@compiled_loop
def _expect(tokens: Tokens, log_theta: Floats, log_beta: Floats, theta: Floats, beta: Floats, weight: Floats) -> float:
    """Sum responsibilities by document and topic, and by word and topic; return the log-likelihood."""
    total = 0.0
    for d in range(tokens.first.size - 1):
        low, high = tokens.begin[d], tokens.begin[d + 1]
        for t in range(tokens.first[d], tokens.first[d + 1]):
            most = -np.inf
            for k in range(low, high):
                a = tokens.topic[k]
                value = log_theta[d, a]
                for kind in range(tokens.rows.shape[1]):
                    value += log_beta[tokens.rows[t, kind], a]
                weight[k - low] = value
                most = max(most, value)
            if most == -np.inf:
                return -np.inf
            scale = 0.0
            for k in range(high - low):
                weight[k] = math.exp(weight[k] - most)
                scale += weight[k]
            count = tokens.times[t]
            total += count * (most + math.log(scale))
            for k in range(low, high):
                a = tokens.topic[k]
                share = count * weight[k - low] / scale
                theta[d, a] += share
                for kind in range(tokens.rows.shape[1]):
                    beta[tokens.rows[t, kind], a] += share
    return total


def _logarithm(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(p)


def log_prior(aspects: Aspects, allowed: Bools, smoothing: tuple[float, float]) -> float:
    """Return the logarithm of the Dirichlet priors, up to a constant."""
    total = 0.0
    for weight, p in ((smoothing[0], aspects.theta[allowed]), (smoothing[1], aspects.beta)):
        total += weight * float(_logarithm(p).sum()) if weight else 0.0
    return total


def normalise_words(beta: Floats, offsets: Ints, smoothing: float) -> Floats:
    """Return probabilities of words from their counts; they are equal in a topic without words."""
    found = beta + smoothing
    for low, high in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        total = found[low:high].sum(axis=0)
        found[low:high] = np.where(total > 0, found[low:high] / np.where(total > 0, total, 1.0), 1 / (high - low))
    return found


def normalise_topics(theta: Floats, allowed: Bools, smoothing: float) -> Floats:
    """Return probabilities of topics from their counts; they are equal in a document without tokens."""
    found = np.where(allowed, theta + smoothing, 0.0)
    empty = found.sum(axis=1) <= 0
    found[empty] = allowed[empty]
    found /= found.sum(axis=1, keepdims=True)
    return found


def climb(
    tokens: Tokens,
    start: Aspects,
    allowed: Bools,
    offsets: Ints,
    smoothing: tuple[float, float],
    *,
    iterations: int,
    tolerance: float,
) -> Ascent:
    """Iterate EM until the relative increase of the objective is small.

    ``start`` has the first parameters, ``allowed`` (documents, topics) marks the topics that documents may have,
    ``offsets`` (kinds + 1,) tells where the words of each kind begin, and ``smoothing`` is for topics and for words.
    """
    aspects, values = start, list[float]()
    weight = np.zeros(allowed.shape[1])
    while True:
        theta, beta = np.zeros_like(aspects.theta), np.zeros_like(aspects.beta)
        value = _expect(tokens, _logarithm(aspects.theta), _logarithm(aspects.beta), theta, beta, weight)
        values.append(float(value) + log_prior(aspects, allowed, smoothing))
        slow = len(values) > 1 and values[-1] - values[-2] <= tolerance * abs(values[-1])
        if slow or len(values) > iterations:
            break
        aspects = Aspects(normalise_topics(theta, allowed, smoothing[0]), normalise_words(beta, offsets, smoothing[1]))
    return Ascent(aspects, values)


@compiled_loop
def _mix(
    first: Ints,
    weight: Floats,
    count: Floats,
    allowed: Bools,
    theta: Floats,
    new: Floats,
    smoothing: float,
    iterations: int,
    tolerance: float,
) -> None:
    """Fit mixtures of topics; the iterations of each document stop when its mixture has converged."""
    topics = weight.shape[1]
    for d in range(first.size - 1):
        for _ in range(iterations):
            total = 0.0
            for a in range(topics):
                new[a] = smoothing if allowed[d, a] else 0.0
                total += new[a]
            for t in range(first[d], first[d + 1]):
                scale = 0.0
                for a in range(topics):
                    scale += theta[d, a] * weight[t, a]
                for a in range(topics):
                    new[a] += count[t] * theta[d, a] * weight[t, a] / scale
                total += count[t]
            change = 0.0
            if total > 0.0:
                for a in range(topics):
                    change = max(change, abs(new[a] / total - theta[d, a]))
                    theta[d, a] = new[a] / total
            if change <= tolerance:
                break


def fit_mixtures(
    bags: Bags, log_words: Floats, allowed: Bools, smoothing: float, *, iterations: int, tolerance: float
) -> Floats:
    """Return mixtures of topics by EM, with fixed probabilities of words.

    ``log_words`` (tokens, topics) has the log-probabilities of the words of tokens, ``allowed`` (documents, topics)
    marks the topics that documents may have, and ``smoothing`` is the pseudocount of topics. The iterations of a
    document stop at their largest number, or when no probability changes by more than ``tolerance``.
    """
    masked = np.where(allowed[bags.document], log_words, -np.inf)
    most = masked.max(axis=1, keepdims=True)
    theta: Floats = allowed / allowed.sum(axis=1, keepdims=True)
    new, weight = np.zeros(allowed.shape[1]), np.exp(masked - most)
    _mix(bags.first, weight, bags.times, allowed, theta, new, smoothing, iterations, tolerance)
    return theta


def start_words(bags: Bags, offsets: Ints, allowed: Bools, noisy: Bools, rng: np.random.Generator) -> Floats:
    """Return first probabilities of words: a topic has the words of the documents that may have it.

    EM would not separate topics that the same documents may have, so the probabilities of ``noisy`` topics are
    multiplied by random factors.
    """
    shares = allowed / np.maximum(allowed.sum(axis=1, keepdims=True), 1)
    counts = np.empty((int(offsets[-1]), allowed.shape[1]))
    document = bags.document
    for kind, (low, high) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        for a in range(allowed.shape[1]):
            weight = bags.times * shares[document, a]
            counts[low:high, a] = np.bincount(bags.words[:, kind], weight, minlength=high - low)
    factors = np.where(noisy, rng.standard_exponential(counts.shape), 1.0)
    # a small pseudocount lets every topic start with all words
    return normalise_words(counts * factors, offsets, 1e-3)
