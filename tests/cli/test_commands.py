"""The commands as a new user would try them: right answers, and one clear line for every mistake."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.cli import main

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ALARM, ASIA = str(EXAMPLES / "alarm.bif"), str(EXAMPLES / "asia.bif")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run the command line in this process; return exit code, stdout and stderr."""

    def call(*words: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gibbsite", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        code = stop.value.code
        return (code if isinstance(code, int) else 1 if code else 0), out, err

    return call


@pytest.mark.parametrize(
    "words",
    [
        (ALARM, "--method", "gibbs", "--sweeps", "50"),
        (ALARM, "--method", "gibbs", "--sweeps", "50", "--query", "LVFAILURE"),
        (ALARM, "--method", "herded", "--sweeps", "50"),
        (ALARM, "--method", "forward", "--draws", "300"),
        (ASIA, "--method", "gibbs", "--sweeps", "50"),  # its zeros cut states off
        (ALARM, "--task", "MAP", "--method", "annealed", "--sweeps", "2"),
    ],
)
def test_every_sentence_is_printed_once(run: Any, words: tuple[str, ...]) -> None:
    """What the library warns of is in the verdict, which the command line prints."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, out, err = run("infer", *words, "--rng", "1")
    assert not [one for one in caught if issubclass(one.category, gs.ConvergenceWarning)]
    said = [part.strip() for part in re.split(r"\n|(?<=[a-z])[.;:] ", out + err)]
    long = [part for part in said if len(part) > 25]
    assert long and len(long) == len(set(long))


def test_marginals_with_evidence_are_exact_and_sorted_by_change(run: Any) -> None:
    code, out, err = run("infer", ALARM, "--observe", "HRBP=HIGH", "--observe", "CO=LOW")
    assert code == 0
    assert "exact" in err
    first = out.splitlines()[0]
    assert first.startswith("STROKEVOLUME")
    assert "before:" in first
    model = gs.read_model(ALARM).observe({"HRBP": "HIGH", "CO": "LOW"})
    assert f"{gs.solve_exact(model).marginals['STROKEVOLUME']['LOW']:.4f}" in first


def test_json_has_the_promised_schema(run: Any) -> None:
    code, out, _ = run("infer", ASIA, "--observe", "dysp=yes", "--json", "--quiet")
    answer = json.loads(out)
    assert code == 0
    assert {"task", "method", "marginals", "mcse", "diagnostics", "seconds", "plan"} <= set(answer)
    assert answer["marginals"]["dysp"] == {"yes": 1.0, "no": 0.0}
    assert answer["diagnostics"]["converged"] is True
    assert sum(answer["marginals"]["bronc"].values()) == pytest.approx(1.0)


def test_gibbs_json_carries_diagnostics_and_plan(run: Any) -> None:
    code, out, err = run("infer", ALARM, "--method", "gibbs", "--sweeps", "200", "--rng", "5", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["method"] == "gibbs"
    assert {"rhat_max", "ess_min", "converged", "reasons"} <= set(answer["diagnostics"])
    assert answer["plan"]["entropy"] == 5
    assert "NOT CONVERGED" in err


def test_strict_turns_doubt_into_an_exit_code(run: Any) -> None:
    # the deterministic OR of asia cannot be crossed by single-site moves
    words = ["infer", ASIA, "--method", "gibbs", "--sweeps", "500", "--rng", "1"]
    assert run(*words)[0] == 0
    assert run(*words, "--strict")[0] == 4


def test_map_and_pr(run: Any) -> None:
    code, out, _ = run("infer", ASIA, "--task", "MAP", "--json", "-q")
    answer = json.loads(out)
    exact = gs.exact.enumerate(gs.read_model(ASIA))
    assert code == 0
    assert answer["log_potential"] == pytest.approx(exact.log_potential, rel=1e-12)
    code, out, _ = run("infer", ASIA, "--task", "PR", "--observe", "smoke=yes", "--json", "-q")
    assert json.loads(out)["log_z"] == pytest.approx(-0.6931471805599453, rel=1e-9)
    code, out, _ = run("infer", ASIA, "--task", "map", "--method", "gibbs", "--sweeps", "2000", "--rng", "1", "--json")
    assert json.loads(out)["log_potential"] <= exact.log_potential + 1e-9


def test_mean_field_is_called_an_approximation_and_a_bound(run: Any) -> None:
    code, out, err = run("infer", ASIA, "--task", "PR", "--method", "mean-field")
    assert code == 0
    assert out.startswith("log Z >= -0.42")
    assert "lower bound" in out
    assert "settled" in err
    code, out, _ = run("infer", ASIA, "--task", "PR", "--method", "mean-field", "--json", "-q")
    answer = json.loads(out)
    assert (answer["kind"], answer["log_z_error"]) == ("lower bound", None)
    assert -1.0 < answer["log_z"] < 0.0
    code, out, err = run("infer", ASIA, "--method", "mean-field", "--query", "smoke")
    assert "±" not in out
    assert "approximate" in err
    code, out, _ = run("infer", ASIA, "--method", "mean-field", "--format", "csv", "--query", "smoke", "-q")
    assert [line.split(",")[3] for line in out.splitlines()] == ["standard_error", "", ""]
    code, out, _ = run("infer", ASIA, "--method", "mean-field", "--json", "-q", "--query", "smoke")
    assert json.loads(out)["mcse"] == {"smoke": {"yes": None, "no": None}}
    words = ["infer", ASIA, "--method", "mean-field", "--sweeps", "1", "-q"]
    assert (run(*words)[0], run(*words, "--strict")[0]) == (0, 4)


def test_belief_propagation_says_what_it_is(run: Any) -> None:
    words = ["infer", ASIA, "--method", "bp"]
    code, out, err = run(*words, "--query", "smoke")
    assert code == 0
    assert "±" not in out
    assert "error is not known" in err
    code, out, _ = run(*words, "--task", "PR", "--kind", "tree-reweighted", "--observe", "dysp=yes")
    assert out.startswith("log Z <= ")
    assert "upper bound" in out
    code, out, _ = run(*words, "--task", "PR", "--observe", "dysp=yes", "--json", "-q")
    answer = json.loads(out)
    assert (answer["kind"], answer["log_z_bounds"]) == ("approximation", [None, None])
    assert {"residual", "messages", "converged"} <= set(answer["diagnostics"])
    code, out, _ = run(*words, "--task", "MAP", "--json", "-q")
    assert json.loads(out)["assignment"]["smoke"] in ("yes", "no")
    loopy = [*words, "--sweeps", "1", "--schedule", "sweep", "--observe", "dysp=yes", "-q"]
    assert (run(*loopy)[0], run(*loopy, "--strict")[0]) == (0, 4)


def test_converged_is_not_said_of_answers_whose_error_is_not_known(run: Any, tmp_path: Any) -> None:
    """Four sites in cycles of strong couplings: beliefs and mean field come to rest at wrong answers."""
    edges = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (3, 0, 1.0), (0, 2, 1.0)]
    loopy, tree = tmp_path / "loopy.uai", tmp_path / "tree.uai"
    for path, chosen in ((loopy, edges), (tree, edges[:3])):
        pairs = [((str(i), str(j)), np.exp(J * np.array([[1, -1], [-1, 1]]))) for i, j, J in chosen]
        factors = [("0", [1.0, 1.5]), *pairs]
        gs.write_model(gs.FactorGraph({str(i): 2 for i in range(4)}, factors), path)
    for method in ("bp", "mean-field"):
        for task in ("MAR", "PR", "MAP")[: 2 if method == "mean-field" else 3]:
            words = ["infer", str(loopy), "--method", method, "--task", task, "--json"]
            code, out, err = run(*words, "--strict")
            found = json.loads(out)["diagnostics"]
            assert (code, found["converged"], found["reasons"]) == (4, None, [])
            assert "settled: " in err
            assert run(*words)[0] == 0
    for task in ("MAR", "PR", "MAP"):
        code, out, err = run("infer", str(tree), "--method", "bp", "--task", task, "--json", "--strict")
        assert (code, json.loads(out)["diagnostics"]["converged"]) == (0, True)
        assert "converged: " in err


def test_mean_field_is_damped_and_parallel_on_demand(run: Any) -> None:
    words = ["infer", ASIA, "--method", "mean-field", "--json", "-q"]
    plans = [json.loads(run(*words, *more)[1])["plan"] for more in ([], ["--damping", "0.5"], ["--parallel"])]
    assert [(plan["damping"], plan["parallel"]) for plan in plans] == [(1.0, False), (0.5, False), (1.0, True)]


@pytest.mark.parametrize("method", ["herded", "herded-shared", "quasi"])
def test_even_samplers_answer_and_say_what_errors_are_from(run: Any, method: str) -> None:
    words = ["infer", ASIA, "--observe", "either=yes", "--method", method, "--sweeps", "1024", "--rng", "1"]
    code, out, err = run(*words, "--query", "smoke")
    assert code == 0
    assert ("±" in out) == (method == "quasi")
    assert ("spread of 4 chains" if method == "quasi" else "NOT JUDGED: no standard errors (4 chains") in err
    notes = [line for line in err.splitlines() if line.startswith("note: ")]
    assert len(notes) == (method != "quasi")
    assert all("not guaranteed" in note for note in notes)
    assert "note" not in run(*words, "-q")[2]
    answer = json.loads(run(*words, "--json", "-q")[1])
    assert [f"note: {remark}" for remark in answer["remarks"]] == notes
    code, out, err = run(*words, "--chains", "1", "--query", "smoke", "--strict")
    assert code == 4
    assert "±" not in out
    assert "NOT JUDGED: no standard errors (1 chain x 1,024 draws)" in err
    assert ("draws are more even than random ones; take 4 chains or more" in err) == (method == "quasi")


def test_annealed_runs_find_the_best_state(run: Any) -> None:
    exact = gs.solve_exact(gs.read_model(ASIA), task="MAP")
    words = ["infer", ASIA, "--task", "MAP", "--method", "annealed", "--sweeps", "300", "--rng", "1"]
    code, out, _ = run(*words, "--json")
    answer = json.loads(out)
    assert code == 0
    assert (answer["method"], answer["kind"], answer["proved"]) == ("annealed", "best found", False)
    assert answer["assignment"] == exact.assignment
    assert answer["diagnostics"]["sweeps"] == 300
    assert answer["diagnostics"]["found"] >= 2
    code, out, err = run(*words)
    assert "log-potential" in out
    assert "found by 4 of 4 chains" in out
    assert "the best state found by 4 of 4 chains, at the end of" in err


def test_several_best_states(run: Any) -> None:
    model = gs.read_model(ASIA)
    ranked = gs.solve_exact(model, task="MAP").rank(3)
    words = ["infer", ASIA, "--task", "MAP", "--best", "3"]
    answer = json.loads(run(*words, "--json", "-q")[1])
    assert answer["best_are"] == "most probable states"
    assert [one["log_potential"] for one in answer["best"]] == pytest.approx([model.log_potential(x) for x in ranked])
    assert [set(one["assignment"]) for one in answer["best"]] == [set(model.sites)] * 3
    some = json.loads(run(*words, "--json", "-q", "--query", "smoke,lung")[1])  # the others are summed out
    assert [set(one["assignment"]) for one in some["best"]] == [{"smoke", "lung"}] * 3
    code, out, _ = run(*words, "-q")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[-3:]] == ["1.", "2.", "3."]
    assert len(out.splitlines()[0].split()) == 4  # a site, and its state in each of the three
    code, _, err = run(*words, "--format", "uai")
    assert code == 2
    assert "holds one state" in err
    code, _, err = run("infer", ASIA, "--best", "2", "-q")
    assert code == 2
    assert "--best has no effect on --task MAR" in err


def test_uai_results_list_all_sites_in_order(run: Any, tmp_path: Path) -> None:
    model = str(tmp_path / "asia.uai")
    assert run("convert", ASIA, model)[0] == 0
    (tmp_path / "asia.evid").write_text("1 0 0")
    code, out, _ = run("infer", model, "-e", str(tmp_path / "asia.evid"), "--format", "uai", "-q")
    words = out.split()
    assert code == 0
    assert words[:5] == ["MAR", "8", "2", "1", "0"]
    assert len(words) == 2 + 8 * 3
    code, out, _ = run("infer", model, "--task", "PR", "--format", "uai", "-q")
    assert out.split()[0] == "PR"
    assert float(out.split()[1]) == pytest.approx(0.0, abs=1e-6)
    target = tmp_path / "out.MAP"
    assert run("infer", model, "--task", "MAP", "--format", "uai", "-o", str(target), "-q")[1] == ""
    assert target.read_text().split()[:2] == ["MAP", "8"]


def test_csv_and_query(run: Any) -> None:
    code, out, _ = run("infer", ASIA, "--format", "csv", "--query", "tub,xray", "-q")
    assert code == 0
    assert [line.split(",")[0] for line in out.splitlines()] == ["site", "tub", "tub", "xray", "xray"]


def test_stdin_and_json_evidence(run: Any, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text('{"smoke": "yes"}')
    code, out, _ = run(
        "infer", "-", "-e", str(tmp_path / "e.json"), "--query", "lung", "-q", stdin=Path(ASIA).read_text()
    )
    assert code == 0
    assert "yes 0.1000" in out


def test_info(run: Any) -> None:
    code, out, _ = run("info", ALARM, "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["sites"] == 37
    assert facts["zeros"] is True
    assert facts["factors_by_arity"]["5"] == 1
    assert facts["exact"]["largest_clique"] >= 4**3
    assert facts["messages"]["exact"] is False
    assert facts["messages"]["number"] > 37
    assert "colors" in run("info", ASIA)[1]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["infer", "nowhere.bif"], 3, "no such file"),
        (["infer", "."], 3, "directory"),
        (["infer", ALARM, "--observe", "FOO=x"], 2, "FOO"),
        (["infer", ALARM, "--observe", "HRPB=HIGH"], 2, "HRBP"),
        (["infer", ALARM, "--observe", "CO=VERYLOW"], 2, "LOW"),
        (["infer", ALARM, "--observe", "CO"], 2, "SITE=STATE"),
        (["infer", ASIA, "--observe", "either=no", "--observe", "tub=yes"], 3, ""),
        (["infer", ALARM, "--observe", "CO=LOW", "--observe", "CO=HIGH"], 2, "twice"),
        (["infer", ALARM, "--query", "NOSE"], 2, "NOSE"),
        (["infer", ALARM, "--method", "magic"], 2, "magic"),
        (["infer", ALARM, "--method", "gibbs", "--task", "PR"], 2, "does not answer PR"),
        (["infer", ALARM, "--method", "annealed"], 2, "does not answer MAR"),
        (["infer", ALARM, "--method", "mean-field", "--task", "MAP"], 2, "does not answer MAP"),
        (["infer", ALARM, "--method", "mean-field", "--sweeps", "0"], 2, "sweeps"),
        (["infer", ALARM, "--method", "mean-field", "--damping", "2"], 2, "damping"),
        (["infer", ALARM, "--method", "bp", "--kind", "summ"], 2, "did you mean 'sum'"),
        (["infer", ALARM, "--method", "bp", "--kind", "max"], 2, "does not answer MAR"),
        (["infer", ALARM, "--method", "bp", "--chains", "2"], 2, "--chains"),
        (["infer", ALARM, "--kind", "sum"], 2, "--kind"),
        (["infer", ALARM, "--method", "quasi", "--sweeps", "1000"], 2, "take --sweeps 512"),
        (["infer", ALARM, "--method", "quasi", "--scan", "random"], 1, "fixed order"),
        (["infer", ALARM, "--method", "herded-shared", "--task", "MAP"], 2, "does not answer MAP"),
        (["infer", ALARM, "--method", "gibbs", "--sweeps", "0"], 2, "sweeps"),
        (["infer", ALARM, "--method", "gibbs", "--chains", "0"], 2, "chains"),
        (["infer", ALARM, "-o", "/nowhere/out.txt"], 3, "/nowhere"),
        (["infer"], 2, "MODEL"),
        (["explode"], 2, "explode"),
        (["convert", ALARM, "out.xyz"], 2, "or give it with --to FORMAT."),
        (["info", __file__], 3, "say which it is with --from FORMAT, one of bif, bqm"),
    ],
)
def test_mistakes_end_in_one_line(run: Any, words: list[str], code: int, said: str) -> None:
    seen, out, err = run(*words)
    assert seen == code, err
    assert said in err
    assert "Traceback" not in err
    assert out == ""
    assert len(err.strip().splitlines()) <= (1 if code == 3 else 4)


def test_bad_files(run: Any, tmp_path: Path) -> None:
    for name, content in (("empty.uai", b""), ("binary.bif", bytes(range(256))), ("short.uai", b"MARKOV\n3\n2 2")):
        (tmp_path / name).write_bytes(content)
        code, out, err = run("infer", str(tmp_path / name))
        assert (code, out) == (3, "")
        assert name in err
        assert len(err.strip().splitlines()) == 1


def test_too_large_for_exact(run: Any, tmp_path: Path) -> None:
    import numpy as np

    rng = np.random.default_rng(1)
    model = gs.ising(np.triu(rng.normal(size=(80, 80)), 1))
    gs.write_model(model, tmp_path / "dense.uai")
    code, out, err = run("infer", str(tmp_path / "dense.uai"), "--method", "exact")
    assert (code, out) == (5, "")
    assert "gibbsite:" in err
    words = ["--task", "PR", "--seconds", "1", "--rng", "1"]
    code, out, err = run("infer", str(tmp_path / "dense.uai"), *words)
    assert code in (0, 1)
    assert "tempered (an exact solution does not fit" in err
    assert re.search(r"^log Z = [\d.]+ ±[\d.]+ .* estimate$", out, re.M)
    assert re.search(r"^log Z >= [\d.]+ +certain$", out, re.M)


def test_version_help_and_completion(run: Any) -> None:
    assert run("--version")[1].strip() == f"gibbsite {gs.__version__}"
    assert "infer" in run("--help")[1]
    assert "--observe" in run("infer", "--help")[1]
    assert "_GIBBSITE_COMPLETE" in run("completion", "bash")[1]


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['gibbsite', '--help']\n"
        "from gibbsite.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numba', 'numpy', 'scipy', 'xarray', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_max_cut_problem_from_file_to_answer(run: Any, tmp_path: Path) -> None:
    square = "4 4\n1 2 3\n2 3 1\n3 4 1\n4 1 2\n"
    (tmp_path / "square").write_text(square)  # recognised by its content
    code, out, _ = run("infer", str(tmp_path / "square"), "--task", "MAP", "--json", "-q")
    answer = json.loads(out)
    assert code == 0
    assert answer["log_potential"] == pytest.approx(2 * 7.0)
    assert run("convert", str(tmp_path / "square"), str(tmp_path / "a.coo"))[0] == 0
    assert run("convert", str(tmp_path / "a.coo"), "-", "--to", "rudy") == (0, "4 4\n1 2 3\n1 4 2\n2 3 1\n3 4 1\n", "")
    code, out, _ = run("convert", str(tmp_path / "a.coo"), "-", "--to", "edges")
    assert out.splitlines()[-1] == "3 4 -1"
    code, _, err = run("convert", ASIA, "-", "--to", "rudy")
    assert code != 0
    assert "this format needs pairs" in err
    code, _, err = run("infer", "-", "--from", "rudy", stdin="2 1\n1 3 1")
    assert code == 3
    assert "<stdin>:2:3: expected a vertex from 1 to 2" in err
    for command in ("convert", "infer"):
        assert ".rudy" in run(command, "--help")[1]


def test_mini_buckets(run: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "grid.uai")
    gs.write_model(gs.ising_grid((6, 6), coupling=0.4, field=0.2), path)
    exact = gs.solve_exact(gs.read_model(path))
    words = ("infer", path, "--method", "mini-bucket", "--entries", "32", "--draws", "50000", "--rng", "1")
    code, out, _ = run(*words, "--task", "PR", "--json", "-q")
    data = json.loads(out)
    assert (code, data["kind"]) == (0, "estimate")
    assert data["log_z_bounds"][0] < exact.log_z < data["log_z_bounds"][1]
    assert abs(data["log_z"] - exact.log_z) < 5 * data["log_z_error"]
    code, out, err = run(*words, "--task", "PR")
    assert out.count("certain") == 2
    assert "with probability 0.95 between" in err
    code, out, _ = run(*words, "--json", "-q", "--strict", "--accuracy", "0.05")
    data = json.loads(out)
    assert (code, data["method"], data["diagnostics"]["converged"]) == (0, "MiniBucket", True)
    for name, states in exact.marginals.items():
        for state, p in states.items():
            assert abs(data["marginals"][name][str(state)] - p) < 6 * data["mcse"][name][str(state)]
    code, _, err = run("infer", path, "--method", "mini-bucket", "--entries", "2", "-q")
    assert (code, "--entries must be at least 4" in err) == (2, True)
    code, _, err = run("infer", path, "--method", "mini-bucket", "--chains", "2")
    assert (code, "--chains" in err) == (2, True)


def test_misspelt_examples_and_evidence_get_a_helpful_sentence(run: Any, tmp_path: Path) -> None:
    code, _, err = run("infer", "alrm")
    assert (code, "did you mean the example alarm?" in err) == (3, True)
    evidence = tmp_path / "evidence.txt"
    evidence.write_text("# seen\nasia yes\n")
    code, _, err = run("infer", ASIA, "-e", str(evidence))
    assert code == 3
    assert "evidence.txt:2:1: expected NAME=STATE on every line (perhaps asia=yes)" in err


def test_facts_and_bounds_say_what_they_count(run: Any) -> None:
    out = run("info", ALARM)[1]
    assert "sites of 2 states, " in out
    found = re.search(r"factors by arity +(.*)", out)
    assert found is not None
    assert found[1].startswith("12 factors of 1 site, ") and "factors of 2 sites" in found[1]
    sizes = [int(each) for each in re.findall(r"of (\d+) site", found[1])]
    assert sizes == sorted(sizes)
    out = run("certify", ASIA, "--steps", "8", "-q")[1]
    assert "expected number of sites in another state, of 8" in out
