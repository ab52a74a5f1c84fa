"""`check_pddl`: findings about PDDL files, each domain alone and with its problems."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from constrained.errors import ConstrainedError, DataError, PddlError, SourceError
from constrained.grammar.source import Source, SourceSpan
from constrained.knowledge.lint.check import Checked
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.pddl import import_pddl
from constrained.knowledge.report import counted
from constrained.planning.model import Domain, Literal, literals_in
from constrained.planning.problem import read_problem_of
from constrained.planning.reachable import SEARCHED, mended, unreachable
from constrained.planning.task import PlanningTask

SUFFIX = ".pddl"
_PROBLEM = re.compile(r"(?:;[^\n]*\n|\s)*\((?:;[^\n]*\n|\s)*define(?:;[^\n]*\n|\s)*\((?:;[^\n]*\n|\s)*problem\b", re.I)


def is_pddl(name: str) -> bool:
    """Whether a file is PDDL, by its name."""
    return name.lower().endswith(SUFFIX)


def is_problem(text: str) -> bool:
    """Whether a PDDL text begins as a problem does."""
    return _PROBLEM.match(text) is not None


def check_pddl(names: Sequence[str], read: Callable[[str], str]) -> list[Checked]:
    """Find what is, or may be, wrong with PDDL files.

    Parameters
    ----------
    names : sequence of str
        Paths of domains and problems. A problem belongs to the domain that it names, or to the only one.
    read : callable
        Returns the text of a file, or raises DataError.

    Raises
    ------
    ConstrainedError
        There are problems without any domain.
    """
    checked, sources = {}, {}
    for name in names:
        checked[name] = Checked(name)
        try:
            text = read(name)
        except DataError as error:
            checked[name].findings.append(Finding("unreadable", error.message, error.hint or "give a text file"))
            continue
        checked[name].text = text
        sources[name] = Source(text, name, Path(name))
    problems = [name for name, source in sources.items() if is_problem(source.text)]
    domains = {name: _domain(checked[name], source) for name, source in sources.items() if name not in problems}
    if problems and len(problems) == len(checked):
        hint = f"constrained check DOMAIN.pddl {problems[0]}"
        raise ConstrainedError(f"{problems[0]} is a problem, and no domain is given", hint)
    for name in problems:
        _problem(checked[name], sources[name], [domain for domain in domains.values() if domain is not None])
    for one in checked.values():
        one.findings.sort(key=lambda finding: finding.span.start or 0 if finding.span else 0)
    return list(checked.values())


def _domain(checked: Checked, source: Source) -> Domain | None:
    try:
        imported = import_pddl(source.text, source=source.name)
        imported.knowledge()
    except SourceError as error:
        checked.findings.append(_refusal(error, source))
        return None
    domain = imported.domain
    checked.findings += _unused(domain, source)
    actions, kinds = (", ".join(map(domain.spell, names)) for names in ([a.name for a in domain.actions], domain.types))
    checked.told = [f"{counted(len(domain.actions), 'action')}: {actions}"]
    checked.told += [f"{counted(len(domain.types), 'type')}: {kinds}"] if kinds else []
    checked.told.append(counted(len(domain.predicates), "predicate"))
    return domain


def _problem(checked: Checked, source: Source, domains: Sequence[Domain]) -> None:
    named = re.search(r"\(\s*:domain\s+([^\s()]+)\s*\)", source.text, re.I)
    of_name = [d for d in domains if named and d.title.lower() == named[1].lower()]
    if not domains or (len(domains) > 1 and len(of_name) != 1):
        what = "its domain has errors" if not domains else "of several domains, it names none of them"
        checked.findings.append(Finding("not-checked", what, "mend the domain, or give the one that it names"))
        return
    domain = (of_name or domains)[0]
    try:
        problem = read_problem_of(domain, source.text, source.name)
        task = PlanningTask(domain, problem)
        reason = unreachable(task, SEARCHED)
    except PddlError as error:
        checked.findings.append(_refusal(error, source))
        return
    checked.told = [counted(len(problem.objects), "object"), counted(len(problem.init), "fact")]
    if reason:
        span = _span(source, problem.goal_place.get("line"), problem.goal_place.get("column"))
        checked.findings.append(Finding("out-of-reach", f"the goal can't be reached: {reason}", mended(reason), span))


def _refusal(error: SourceError, source: Source) -> Finding:
    code = "limit" if error.line is None and "more than" in error.problem else "syntax"
    return Finding(code, error.problem, error.hint or "see docs/import.md", _span(source, error.line, error.column))


def _span(source: Source, line: int | None, column: int | None) -> SourceSpan | None:
    if line is None:
        return None
    start = source.offset(line, column or 1)
    word = re.compile(r"[^\s();,]*").match(source.text, start)
    return source.span(start, len(word[0]) if word else 0)


def _unused(domain: Domain, source: Source) -> Iterator[Finding]:
    """Findings about predicates that no action mentions."""
    used = {literal.predicate for literal in _literals(domain)}
    for name in domain.predicates:
        place = domain.places.get(f"predicate {name}")
        if name not in used and place:
            yield Finding(
                "fact-without-use",
                f"no action needs or changes {domain.spell(name)}",
                "leave it out, or use it in an action; a goal may still ask for what holds at the start",
                _span(source, place.get("line"), place.get("column")),
            )


def _literals(domain: Domain) -> Iterable[Literal]:
    for action in domain.actions:
        yield from (effect.literal for effect in action.effects)
        for condition in action.conditions:
            yield from literals_in(condition)
