"""What commands import: neither models' libraries nor the household's files, unless they are used.

Each test asks one new process, which runs several commands one after another.
"""

import json
import signal
import subprocess
import sys

import pytest

from tests.planning_domains import BLOCKS, SUSSMAN

LIBRARIES = "torch transformers huggingface_hub peft accelerate sympy networkx outlines".split()
HOUSEHOLD = "constrained.environments.household.game"

SCRIPT = f"""
import contextlib, io, json, sys
from constrained import ActionKnowledge, generate_plan
from constrained.cli import main
from constrained.environments.world import WorldEnvironment

def planned(file):
    knowledge = ActionKnowledge.from_lark(file)
    return generate_plan("light", knowledge, environment=WorldEnvironment(knowledge.own_world), strategy="act").path

def run(step):
    if isinstance(step, str):
        return eval(step)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(step)
    return [code, out.getvalue(), err.getvalue()]

for step in json.loads(sys.argv[1]):
    result = run(step)
    print(json.dumps([result, [name for name in {[*LIBRARIES, HOUSEHOLD]} if name in sys.modules]]))
"""

LAMP = """\
%declare _STEP ROOM

//: type room
//: object hall, study: room
//: fact at(one room), switch(room), lit
//: init at(hall), switch(study)
//: goal lit, at(hall)

// Make light, and be in the hall.
start: | go{ROOM} | press

// go: go to the other room.
//: needs not at(r)
//: makes at(r)
go{r}: "go to the " r _STEP start

// press: press the switch where you are.
//: needs some r: room (at(r), switch(r))
//: makes lit
//: tells lit by "The lamp is lit."
press: "press the switch" _STEP start
"""


def results(tmp_path, *steps, may=()) -> list:
    """What each step of a new process gave: a step is a command's words, or an expression of Python.

    Nothing heavy may be imported but `may`.
    """
    given = [step if isinstance(step, str) else list(map(str, step)) for step in steps]
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(given)], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    for step, (_, imported) in zip(steps, lines, strict=True):
        assert set(imported) <= set(may), step
    return [result for result, _ in lines]


def test_a_search_and_whatever_only_reads_knowledge(tmp_path):
    lamp, domain, problem = (tmp_path / name for name in ("lamp.lark", "domain.pddl", "problem.pddl"))
    lamp.write_text(LAMP)
    domain.write_text(BLOCKS)
    problem.write_text(SUSSMAN)
    shown = results(
        tmp_path,
        ["plan", "--knowledge", lamp],
        ["plan", "--knowledge", lamp, "--model", "random", "--max-steps", 3],
        ["plan", "--pddl", domain, problem],  # the shipped network chooses
        ["plan", "--pddl", domain, problem, "--ahead", "--model", "chooser", "--format", "pddl"],
        f"planned({str(lamp)!r})",
        ["check", lamp],
        ["check", lamp, "go to the study", "press the switch"],
        ["explain", lamp, "go to the study"],
        ["show", lamp],
        ["export", "pddl", lamp],
        ["new", "mine"],
    )
    assert "Solved in 3 steps" in shown[0][1] and "Solved in" in shown[2][1]
    assert shown[4] == ["go to the study", "press the switch", "go to the hall"]
    assert [result[0] for result in shown if isinstance(result[0], int)] == [0] * 10


def test_the_embedded_model_needs_torch_alone(tmp_path):
    steps = [["plan", "heat an egg and put it in the fridge"], ["plan", "put a mug in the desk", "--strategy", "react"]]
    for code, out, _ in results(tmp_path, *steps, may=["torch", HOUSEHOLD]):
        assert code == 0 and "> go to" in out


def test_a_model_that_is_not_there(tmp_path):
    steps = [
        (["plan", "put a mug in the desk", "--model", "./nowhere"], "no such folder: nowhere"),
        (["plan", "put a mug in the desk", "--model", "mine.gguf"], "no such file: mine.gguf"),
        (["plan", "put a mug in the desk", "--model", "llama.cpp:mine.gguf"], "no such file: mine.gguf"),
        (["plan", "put a mug in the desk", "--model", "mine.safetensors"], "no file mine.safetensors"),
        (["plan", "put a mug in the desk", "--strategy", "lumos", "--grounder", "a/b/c"], "no such folder: a/b/c"),
        (["train", "sft", "--data", "rows.jsonl", "--out", "out", "--model", "mine.gguf"], "no such file"),
        (["train", "sft", "--data", "rows.jsonl", "--out", "out", "--adapter", "./nowhere"], "no such folder"),
        (
            ["train", "self-learning", "--train", "household:0-2", "--test", "household:2-4", "--model", "a/b/c"],
            "a/b/c",
        ),
        (["distill", "make tea", "--model", "./nowhere"], "no such folder: nowhere"),
        (["serve", "--model", "mine.gguf"], "no such file: mine.gguf"),
    ]
    shown = results(tmp_path, *(step for step, _ in steps), may=[HOUSEHOLD])
    for (command, message), (code, _, error) in zip(steps, shown):
        assert code == 1 and message in error, command


@pytest.mark.parametrize("imported", ["constrained.interrupts", "numpy", "constrained.cli.options", "constrained.cli"])
@pytest.mark.parametrize("way", ["module", "script"])
def test_ctrl_c_while_the_command_starts_is_one_line(tmp_path, imported, way):
    script = tmp_path / "constrained"  # as pip writes it
    script.write_text("import sys\nfrom constrained.cli import main\nsys.exit(main())\n")
    command = ["-m", "constrained"] if way == "module" else [str(script)]
    # Python says on standard error what it has imported.
    command = [sys.executable, "-X", "importtime", *command, "plan", "--knowledge", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.split("|")[-1].strip() == imported:
                process.send_signal(signal.SIGINT)
                break
        said = [line for line in process.stderr if not line.startswith("import time:")]
    assert said == ["interrupted\n"] and process.returncode == 130


def test_ctrl_c_is_left_alone_where_it_is_ignored_and_in_other_programs():
    code = "import signal, constrained; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert shown.stdout == "True\n"
    begun = [sys.executable, "-m", "constrained", "check", "-"]
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    with subprocess.Popen(begun, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **ignoring) as process:
        process.send_signal(signal.SIGINT)
        assert process.communicate(LAMP)[0] and process.returncode != 130
