"""`--help` of every command: each has an example that parses, and options that say what they take."""

import argparse
import shlex
from collections import defaultdict

import pytest

from constrained.cli import knowledge_files, main, make_parser


def commands_below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Every command by its words, those that only hold others, too."""
    found = {parser.prog: parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                found |= commands_below(below)
    return found


PARSER = make_parser("bench")
COMMANDS = commands_below(PARSER)
SHARED = (
    "--device --bind --start --force --demonstrations --no-knowledge-prompt --level --preset --rank --seed --tokenizer"
).split()
"""Options that mean the same wherever they are."""


def options(parser):
    return [one for one in parser._actions if one.option_strings and one.dest not in ("help", "version")]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_does_and_every_option_what_it_takes(name):
    parser = COMMANDS[name]
    assert parser.description
    for one in parser._actions:
        if not isinstance(one, argparse._SubParsersAction):
            assert one.help, one.dest
            assert len(parser._get_formatter()._expand_help(one)) < 340, one.dest


@pytest.mark.parametrize("name", [name for name in COMMANDS if not name.startswith("constrained bench ")])
def test_every_default_is_named(name):
    for one in options(COMMANDS[name]):
        if one.nargs != 0 and one.default not in (None, [], argparse.SUPPRESS):
            assert "default" in one.help, one.dest


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_that_parse(name):
    lines = [line.strip() for line in (COMMANDS[name].epilog or "").splitlines() if line.startswith("  ")]
    assert lines
    for line in lines:
        for command in line.split("  ")[0].split(" && "):  # after two blanks: what it does
            program, *words = shlex.split(command)
            assert program == "constrained"
            if "--help" not in words:
                _, rest = PARSER.parse_known_args(knowledge_files.with_kind(words))
                assert not any(word.startswith("-") for word in rest)


def test_an_option_that_means_the_same_has_the_same_words():
    words = defaultdict(set)
    for name, parser in COMMANDS.items():
        if not name.startswith("constrained bench "):
            for one in options(parser):
                words[one.option_strings[-1]].add(one.help.partition(": ")[2] if "--tokenizer" in one.option_strings
                                                  else one.help)  # fmt: skip
    for option in SHARED:
        told = {text.replace(" (default: embedded)", "").replace("; repeatable", "") for text in words[option]}
        assert len(told) == 1 or option == "--seed" and len(told) == 2, (option, told)  # training's seed is of more


def test_examples_stand_on_lines_of_their_own(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["plan", "--help"])
    printed = capsys.readouterr().out
    assert "\n  constrained plan domain.pddl problem.pddl\n" in printed and "MAX_STEPS" not in printed
