"""All findings of one file, as far as it can be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from constrained import html
from constrained.automaton import Grammar
from constrained.errors import ConstrainedError, GrammarError, KnowledgeError, LimitError
from constrained.grammar import STEP, read_lark, read_source
from constrained.grammar.analysis import productive_rules
from constrained.grammar.lark_outline import RULE, Outline, read_outline
from constrained.grammar.nodes import Rule
from constrained.grammar.source import Source, SourceSpan
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.lint import actions, names, productivity, refused, slots, unbounded, unwritable
from constrained.knowledge.lint.ambiguity import ambiguous
from constrained.knowledge.lint.finding import ERROR, SEVERITIES, Finding
from constrained.knowledge.report import counted
from constrained.limits import DEFAULT, Limits


@dataclass
class Checked:
    """What is known of one file.

    Attributes
    ----------
    name : str
    findings : list of Finding
        In the file's order.
    text : str
        The file's own; empty if it can't be read.
    grammar : Grammar or None
        None if it can't be loaded.
    knowledge : ActionKnowledge or None
        None if it can't be loaded, or has no actions.
    """

    name: str
    findings: list[Finding] = field(default_factory=list)
    text: str = ""
    grammar: Grammar | None = None
    knowledge: ActionKnowledge | None = None

    def count(self, severity: str) -> int:
        """How many findings are errors, warnings or notes."""
        return sum(f.severity == severity for f in self.findings)

    def line(self, place: SourceSpan | None) -> str:
        """The line of the file that a place is on."""
        lines = self.text.split("\n")
        return lines[place.line - 1] if place and 1 <= place.line <= len(lines) else ""

    @property
    def counts(self) -> str:
        """How many findings there are of each severity, in words."""
        return ", ".join(counted(self.count(s), s) for s in SEVERITIES if self.count(s)) or "no findings"

    def _repr_html_(self) -> str:
        rows = [
            [
                f"{f.span.line}:{f.span.column}" if f.span else "",
                f"{html.badge(f.severity)} {html.code(f.code)}",
                html.plain(f.message) + self._excerpt(f.span),
                html.plain(f.why),
                html.plain(f.fix),
            ]
            for f in self.findings
        ]
        table = html.table(["line", "", "what", "why", "fix"], rows) if rows else ""
        return html.output(html.paragraph(f"<strong>{html.plain(self.name)}</strong>: {self.counts}"), table)

    def _excerpt(self, place: SourceSpan | None) -> str:
        line = self.line(place)
        if place is None or not line.strip():
            return ""
        first = place.column - 1
        return "<br>" + html.excerpt(line, first, max(first + 1, (place.end or 0) - 1))

    def _repr_pretty_(self, printer, cycle: bool) -> None:
        printer.text(f"Checked({self.name!r}: {self.counts})")


def check_file(
    text_or_path,
    *,
    start: str = "start",
    values: Mapping | None = None,
    tokens: unwritable.Tokens | None = None,
    tokenizer: str = "the tokenizer",
    limits: Limits = DEFAULT,
) -> Checked:
    """Everything that is, or may be, wrong with a `.lark` file; raises nothing for what is in it.

    Parameters
    ----------
    text_or_path : str or Path
        As `Grammar.from_lark` takes it.
    start : str
    values : mapping, optional
        Slot -> values, as `Grammar.bind` takes them.
    tokens : Tokens, optional
        What the model's tokenizer can write; `tokenizer` is its name in messages.
    limits : Limits
    """
    try:
        source = read_source(text_or_path, limits)
    except GrammarError as error:
        hint = error.hint or "save it as UTF-8 text"
        return Checked(
            str(text_or_path), [Finding("unreadable", error.message, "nothing in it could be checked", hint)]
        )
    checked = Checked(source.name, text=source.text)
    rules, slot_names, fault = _load(source, limits)
    if isinstance(fault, LimitError):
        checked.findings = [refused.refusal(fault, source)]
        return checked
    outline = read_outline(source, limits)
    found = _Findings()
    found.of(lambda: _as_written(source, outline, start))
    if fault is not None:
        found.of(lambda: refused.literals(outline))
    if fault is not None and not refused.told(fault, found.all):
        found.all.append(refused.refusal(fault, source, outline))
    bound = False
    if rules is not None and start in rules:
        reached = outline.reachable(start)
        found.of(lambda: _as_read(rules, outline, reached, start))
        _build(checked, rules, slot_names, start, source, limits, found)
        if checked.grammar is not None:
            bound = _bind(checked, outline, values or {}, found)
        if tokens is not None:
            found.of(lambda: unwritable.unwritable(outline, reached, values or {}, tokens, tokenizer))
            if bound and not found.errors:
                found.of(
                    lambda: unwritable.never_whole(
                        checked.grammar, checked.knowledge, outline, tokens, tokenizer, start
                    )
                )
    if checked.knowledge is not None:
        found.of(lambda: actions.left_out(outline, checked.knowledge.graph, reached & productive_rules(rules), start))
        found.of(lambda: actions.uncommented(outline, source.text, checked.knowledge.graph.actions, start))
        if bound:
            found.of(lambda: ambiguous(checked.knowledge, outline))
    checked.findings = sorted(found.all, key=_order)
    return checked


class _Findings:
    """Findings as they are made; a check that costs too much is itself one."""

    def __init__(self):
        self.all: list[Finding] = []

    def of(self, lint) -> None:
        """Add what `lint` yields."""
        try:
            self.all.extend(lint())
        except (ConstrainedError, RecursionError) as error:
            message = getattr(error, "message", "groups are nested too deeply")
            self.all.append(
                Finding(
                    "not-checked",
                    f"part of the file was not checked: {message}",
                    "there may be more to find",
                    "make the file simpler",
                )
            )

    @property
    def errors(self) -> bool:
        return any(f.severity == ERROR for f in self.all)


def _load(source: Source, limits: Limits) -> tuple[dict[str, Rule] | None, frozenset[str], GrammarError | None]:
    try:
        rules, slot_names = read_lark(source, limits)
        return rules, slot_names, None
    except GrammarError as error:
        return None, frozenset(), error


def _as_written(source: Source, outline: Outline, start: str) -> Iterator[Finding]:
    """What the text alone says."""
    for fault in outline.faults:
        yield refused.syntax(fault, outline.source)
    yield from names.undefined(outline)
    yield from names.not_in_library(source, outline)
    yield from names.defined_twice(outline)
    yield from names.wrong_arguments(outline)
    yield from names.unused_parameters(outline)
    yield from names.repeated_alternatives(outline)
    yield from names.priorities(outline)
    yield from actions.missing_steps(outline, start)
    if start in outline.by_name:
        yield from names.unused(outline, start)
        yield from actions.unreachable(outline, start)
        reached = outline.reachable(start)
        yield from unbounded.endless(source, outline, reached)
        yield from productivity.matches_nothing(outline, reached)
    elif start not in outline.guessed:
        defined = [d.name for d in outline.definitions if d.kind == RULE]
        yield Finding(
            "no-start",
            f"there is no rule '{start}'",
            "it is where every text begins",
            f"write `{start}: {' | '.join(defined[:3]) or '...'}`"
            + (", or check it with --start NAME" if defined else ""),
        )


def _as_read(rules: dict[str, Rule], outline: Outline, reached: set[str], start: str) -> Iterator[Finding]:
    """What the rules say, once lark has read them."""
    yield from productivity.never_finish(rules, outline, reached, start)
    yield from productivity.only_empty(rules, outline, reached)
    yield from unbounded.nesting(rules, outline, reached & productive_rules(rules))


def _build(checked: Checked, rules, slot_names, start: str, source: Source, limits: Limits, found: _Findings) -> None:
    try:
        checked.grammar = Grammar.from_rules(rules, slot_names, start, source, limits)
        if STEP in slot_names:
            checked.knowledge = ActionKnowledge.from_grammar(checked.grammar, source, start)
    except GrammarError as error:
        if not found.errors:  # else the cause is told of
            found.all.append(refused.refusal(error, source))
    except KnowledgeError as error:
        found.all.append(
            Finding(
                "no-actions",
                error.message.removeprefix(f"{source.name}: "),
                "there is nothing an agent could do",
                error.hint,
            )
        )


def _bind(checked: Checked, outline: Outline, values: Mapping, found: _Findings) -> bool:
    """Whether the slots could be bound to `values`."""
    wrong = _Findings()
    wrong.of(lambda: slots.bindings(checked.grammar, outline, values))
    wrong.of(lambda: slots.without_key(outline, values))
    if values and not wrong.errors:
        try:
            checked.grammar = checked.grammar.bind(**values)
            if not checked.grammar.unbound():
                checked.grammar.automaton  # says whether any text is left
            if checked.knowledge is not None:
                checked.knowledge = checked.knowledge.bind(**values)
        except ConstrainedError as error:
            wrong.all.append(
                Finding(
                    "slot-without-values",
                    error.message.split("\n", 1)[0],
                    "the file can't be used with these values",
                    error.hint or "bind other values",
                )
            )
    found.all += wrong.all
    return not wrong.errors


def _order(finding: Finding) -> tuple:
    line, column = (finding.span.line, finding.span.column) if finding.span else (0, 0)
    return line, column, SEVERITIES.index(finding.severity)
