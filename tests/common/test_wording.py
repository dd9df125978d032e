"""Messages name arguments and parts in the spelling of Python, and keep the marks for other spellings."""

from __future__ import annotations

from gibbsite._common.wording import Text, argument, escaped, nearest, part, unknown


def test_a_message_can_be_spelled_for_the_command_line() -> None:
    text = Text(f"{argument('chains')} must be at least 1; take {argument('chains', 4)}.")
    assert text == "chains must be at least 1; take chains=4."
    assert text.arguments == ("chains", "chains")
    spelled = text.spelled(lambda mark: " ".join(["--" + mark.name, *mark.values]))
    assert spelled == "--chains must be at least 1; take --chains 4."


def test_parts_are_named_by_their_public_place() -> None:
    assert Text(f"use {part('HerdedGibbs', keys='site')}.") == "use gs.HerdedGibbs(keys='site')."
    assert Text(part("PoissonMH")) == "gs.kernels.PoissonMH()"


def test_characters_that_act_on_terminals_are_written_out() -> None:
    assert escaped("a\x1b[2Jb\n") == "a\\u001b[2Jb\\u000a"
    assert escaped("two\nlines", keep="\n") == "two\nlines"


def test_unknown_names() -> None:
    message = unknown("method", "gibs", ["exact", "gibbs"])
    assert message == "method 'gibs' is unknown; did you mean 'gibbs'? There are exact, gibbs."
    message = unknown("schedule", "x", ["linear", "exponential"], ", or give temperatures")
    assert message == "schedule 'x' is unknown; choose one of linear, exponential, or give temperatures."
    assert nearest("alram", ["alarm", "asia"]) == "alarm"
    assert nearest("zzz", ["alarm"]) is None
