"""Every answer to a question shows the numbers, printed and in notebooks, and names do not become markup."""

from __future__ import annotations

from typing import Any

import pytest

import gibbsite as gs

ODD = gs.FactorGraph(
    {"<b>rain</b>": ["no", "yes"], "wet": ["no", "yes"]},
    [("<b>rain</b>", [0.75, 0.25]), (("<b>rain</b>", "wet"), [[0.9, 0.1], [0.2, 0.8]])],
    directed=True,
)
RAIN = "<b>rain</b>"


@pytest.mark.parametrize(
    ("found", "number"),
    [
        (lambda: gs.questions.rank_observations(ODD, RAIN), "0.3163 bits"),
        (lambda: gs.questions.plan_observations(ODD, RAIN, depth=1), "0.8113 bits"),
        (lambda: gs.questions.measure_conflict(ODD, {RAIN: "yes", "wet": "no"}), "conflict 1.28"),
        (lambda: gs.questions.weigh_evidence(ODD, {"wet": "yes"}, RAIN, "yes"), "= 0.7273"),
        (lambda: gs.questions.analyse_sensitivity(ODD, RAIN, "yes", {"wet": "yes"}), "= 0.7273"),
        (lambda: gs.questions.estimate_effect(ODD, RAIN, "wet"), "yes 0.8000"),
        (lambda: gs.questions.compare_evidence(ODD, {}, {"wet": "yes"}), "0.2500 -> 0.7273"),
        (lambda: gs.questions.ask(ODD, [{"wet": "yes"}]), "0.2750"),
        (lambda: gs.applications.solve_cases(ODD, {"wet": ["yes", "no"]}), "0.7273"),
    ],
)
def test_answers_show_their_numbers(found: Any, number: str):
    answer = found()
    assert number in str(answer) and number in answer.summary() and len(repr(answer)) < 2000
    page = answer._repr_html_()
    assert number.replace(">", "&gt;") in page or number.removeprefix("= ") in page
    assert "<b>" not in page


def test_where_no_arrows_lead_there_is_no_effect():
    text = str(gs.questions.estimate_effect(ODD, "wet", RAIN))
    assert "no effect: no arrows lead from wet to <b>rain</b>" in text
