"""Every code of `constrained check`: found where it should be, in just these words, and nowhere else."""

import pytest

from constrained import Vocabulary
from constrained.knowledge.lint import CODES, TokenCover, check_file
from constrained.knowledge.pddl import import_pddl
from tests.knowledge.lint.catalogue import CASES
from tests.planning.domains import FERRY


def check(text, options):
    options = dict(options)
    if "tokens" in options:
        tokens = [token.encode() for token in options["tokens"]]
        options.update(tokens=TokenCover(Vocabulary(tokens, [len(tokens)])), tokenizer="abc")
    return check_file(text, **options).findings


def case_name(case):
    return f"{case.code}-{CASES.index(case)}"


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_the_finding_of_a_small_file(case):
    found = [f for f in check(case.text, case.options) if f.code == case.code]
    assert len(found) == 1
    finding = found[0]
    assert (finding.span and (finding.span.line, finding.span.column, finding.span.end)) == case.place
    if case.message is not None:
        assert (finding.message, finding.fix) == (case.message, case.fix)
    assert finding.message and finding.why and finding.fix and finding.severity == CODES[case.code]


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_the_file_mended_has_no_findings(case):
    options = case.options if case.clean_options is None else case.clean_options
    assert [(f.code, f.message) for f in check(case.clean, options)] == []


def test_every_code_is_in_the_catalogue():
    elsewhere = {"unreadable", "not-checked"}  # test_check.py
    assert {case.code for case in CASES} | elsewhere == set(CODES)


def test_a_domain_whose_problems_are_in_other_files_has_no_errors():
    assert not check_file("household_game").findings
    assert {finding.code for finding in check_file(import_pddl(FERRY).text).findings} <= {"fact-without-use"}
