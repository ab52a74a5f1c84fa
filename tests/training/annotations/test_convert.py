"""GSM8K, SVAMP and StrategyQA as conversations: admitted by the grammars, executed from their text."""

import gzip
import json
from fractions import Fraction

import pytest

from constrained.cli import main
from constrained.environments.executor.executor import Executor
from constrained.environments.maths.problems import WordProblem
from constrained.errors import DataError
from constrained.training.annotations import gsm8k, svamp
from constrained.training.annotations.convert import converted, refused, training_conversations
from tests.data import shared
from tests.training.annotations.solutions import SODA


def write(path, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows) if path.suffix == ".jsonl" else json.dumps(rows)
    path.write_text(text, encoding="utf-8")
    return path


def gsm8k_row(question, answer):
    solution, _, number = answer.rpartition("\n#### ")
    return WordProblem("row", "", question, solution, Fraction(number))


def test_a_solution_names_its_results(tmp_path):
    (row,) = converted("gsm8k", write(tmp_path / "soda.jsonl", [SODA]))
    assert [step.turn for step in row.annotation.steps] == ["R1 = Calculator(2-.5)", "R2 = Calculator(R1/.25)"]
    assert row.annotation.steps[0].subgoal == "Find what belongs in the blank: He spent $1.5 because ___"
    assert row.results == ["1.5", "6"] and not row.failure and refused(row.annotation) is None


@pytest.mark.parametrize(
    "question, answer, last, how",
    [
        ("What percentage?", "2 red / 8 = <<2/8=.25>>.25\n#### 25", "R2 = Calculator(R1 * 100)", "marks, percentage"),
        ("How many cents?", "So .50-.25 = $<<.50-.25=.25>>0.25\n#### 25", "R2 = Calculator(R1 * 100)", "marks, cents"),
        ("How many?", "36/10= <<36/10=3.6>>3.6, so 4 buses.\n#### 4", "R2 = Calculator(ceil(R1))", "marks, rounding"),
        ("How many first?", "1*2=<<1*2=2>>2\n2*9=<<2*9=18>>18\n#### 2", "R3 = Calculator(R1)", "marks, choice"),
        ("How many in all?", "So 40 + 6 = 46 cars.\n#### 46", "R1 = Calculator(40 + 6)", "text"),
        (
            "How old?",
            "Let x be it.\n7 + x = 2 * x.\n#### 7",
            "R1 = Define(x); R2 = SetEquation(7 + x = 2 * x); R3 = SolveEquation(R2)",
            "algebra",
        ),
        (
            "How many meals?",
            "We know that p + m = 27 and p = 8m.\n#### 3",
            "R1 = Define(p); R2 = Define(m); R3 = SetEquation(p + m = 27); R4 = SetEquation(p = 8 * m); "
            "R5, R6 = SolveEquation(R3, R4)",
            "algebra",
        ),
    ],
)
def test_how_a_solution_is_read(question, answer, last, how):
    annotation = gsm8k.convert(gsm8k_row(question, answer))
    assert annotation.reading == how and annotation.steps[-1].turn == last and refused(annotation) is None


@pytest.mark.parametrize(
    "answer, why",
    [
        ("So 4+4+6 = <<4+4+6=14>>14\n#### 18", "its text doesn't come to the published answer"),
        ("So 4+4+6 = 18\n<<4+4=8>>8\n#### 18", "its text tells the answer, but no calculation that is right"),
        ("The answer is <<27=27>>27\n#### 27", "its text tells the answer, but no calculation that is right"),
        ("He has 300 cents left.\n#### 300", "no calculation can be read in it"),
    ],
)
def test_an_answer_that_isnt_calculated_is_not_made_up(answer, why):
    assert gsm8k.convert(gsm8k_row("How many?", answer)).startswith(why)


def test_gsm8k_reproduces_its_answers():
    rows = list(converted("gsm8k", shared("gsm8k/train.jsonl.gz"), limit=150))
    assert sum(not row.failure for row in rows) >= 148
    assert all(refused(row.annotation) is None for row in rows[:40] if row.annotation)
    for row in rows[:40]:
        if row.annotation:  # once more, from one turn with all actions
            executor = Executor("maths")
            executor.execute("; ".join(step.turn for step in row.annotation.steps))
            assert executor.values[max(executor.values)] == Fraction(row.annotation.answer)


def test_svamp_reproduces_its_answers():
    rows = list(converted("svamp", shared("svamp/SVAMP_first700.json"), limit=150))
    assert [row.name for row in rows if row.failure] == []
    deep = next(row.annotation for row in rows if len(row.annotation.steps) == 2)
    assert refused(deep) is None and "R1" in deep.steps[1].turn and "Subgoal 1" in deep.steps[1].subgoal


def test_strategyqa_s_decompositions_become_lookups_and_comparisons():
    rows = list(converted("strategyqa", shared("strategyqa/train.json.gz"), limit=120))
    assert sum(row.annotation is not None for row in rows) >= 118
    assert all(refused(row.annotation) is None for row in rows[:40] if row.annotation)
    assert [step.turn for step in rows[0].annotation.steps] == [  # Lumos's own example, appendix F.2
        "R1 = KnowledgeQuery(Julius Caesar); R2 = ParagraphRetrieve(R1, Query: How many kids did Julius Caesar have?); "
        "R3 = QA([R2], Question: How many kids did Julius Caesar have?)",
        "R4 = KnowledgeQuery(Genghis Khan); R5 = ParagraphRetrieve(R4, Query: How many kids did Genghis Khan have?); "
        "R6 = QA([R5], Question: How many kids did Genghis Khan have?)",
        "R7 = Calculator(R6 > R3)",
    ]
    assert rows[0].results == ["Julius Caesar had three children", "Genghis Khan had sixteen children", "yes"]


def test_conversations_alternate_and_stop(tmp_path):
    (row,) = converted("gsm8k", write(tmp_path / "soda.jsonl", [SODA]))
    made = {(c["module"], c["formulation"]): c["messages"] for c in training_conversations(row)}
    assert len(made) == 4
    for messages in made.values():
        assert [m["role"] for m in messages] == ["user", "assistant"] * (len(messages) // 2)
    planner = [m["content"] for m in made["planner", "iterative"]]
    assert planner[2:] == [
        "The executed result for Subgoal 1 is 1.5. Should we stop planning?",
        "No, I will keep planning. Subgoal 2: Find what belongs in the blank: He bought 6 ounces because ___",
        "The executed result for Subgoal 2 is 6. Should we stop planning?",
        "Yes, I will stop planning.",
    ]
    assert made["grounder", "onetime"][1]["content"] == "R1 = Calculator(2-.5); R2 = Calculator(R1/.25)"
    assert "Calculator(formula) computes a formula" in made["grounder", "iterative"][0]["content"]


def test_import_writes_json_lines(tmp_path, capsys):
    source, out = write(tmp_path / "soda.jsonl", [SODA, {**SODA, "answer": "none\n#### 7"}]), tmp_path / "out.jsonl"
    assert main(["import", "gsm8k", str(source), "-o", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"wrote {out}: 4 conversations of 1 rows\n"
    assert printed.err == "note: 1 left out: no calculation can be read in it\n"
    assert [json.loads(line)["name"] for line in out.read_text().splitlines()] == ["gsm8k-1"] * 4
    assert main(["import", "gsm8k", str(source), "-o", str(out)]) == 1 and "--force" in capsys.readouterr().err


@pytest.mark.parametrize(
    "dataset, name, rows, message",
    [
        ("gsm8k", "a.jsonl", [{"question": "q"}], "row 1: no text under 'answer'"),
        ("gsm8k", "a.jsonl", [{"question": "q", "answer": "5"}], "doesn't end in #### and a number"),
        ("gsm8k", "a.jsonl", [{"question": "q", "answer": "a\n#### five"}], "doesn't end in #### and a number"),
        ("svamp", "a.json", [dict.fromkeys(("ID", "Type", "Body", "Question", "Equation"), "1")], "no number under"),
        ("svamp", "a.json", {"ID": "1"}, "not a list of objects"),
        ("strategyqa", "a.json", [{"qid": "1"}], "row 1: no text under 'term'"),
    ],
)
def test_malformed_rows_say_where(tmp_path, dataset, name, rows, message):
    with pytest.raises(DataError, match=message):
        list(converted(dataset, write(tmp_path / name, rows)))


def test_a_file_cut_short_says_so(tmp_path):
    whole = gzip.compress(json.dumps(SODA).encode() * 50)
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="can't read .* after row"):
        list(converted("gsm8k", tmp_path / "cut.jsonl.gz"))


def test_an_equation_that_is_none_is_left_out():
    problem = WordProblem("one", "Addition", "How many?", "( 1.0 + ", Fraction(1))
    assert svamp.convert(problem).startswith("the equation is none")
