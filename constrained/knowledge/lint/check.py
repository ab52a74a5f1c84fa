"""`check_file`: all findings of one file, as far as the file can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from constrained import html
from constrained.automaton import Grammar
from constrained.errors import ConstrainedError, GrammarError, KnowledgeError, LimitError
from constrained.grammar import STEP, read_lark, read_source
from constrained.grammar.analysis import productive_rules
from constrained.grammar.lark_definitions import Definition, Faults
from constrained.grammar.lark_outline import RULE, Outline, read_outline
from constrained.grammar.lark_reader import LarkRules
from constrained.grammar.nodes import Rule
from constrained.grammar.source import Source, SourceSpan
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.lint import actions, names, productivity, refused, slips, unbounded, unwritable
from constrained.knowledge.lint import world as worlds
from constrained.knowledge.lint.ambiguity import ambiguous
from constrained.knowledge.lint.finding import ERROR, SEVERITIES, Finding
from constrained.knowledge.report import counted
from constrained.knowledge.tools import Tool
from constrained.limits import DEFAULT, Limits


@dataclass
class Checked:
    """One file with its findings.

    Attributes
    ----------
    name : str
    findings : list of Finding
        In the file's order.
    text : str
        The content of the file; empty if it can't be read.
    grammar : Grammar or None
        None if it can't be loaded.
    knowledge : ActionKnowledge or None
        None if it can't be loaded, or has no actions.
    outline : Outline or None
        None if it can't be read.
    told : list of str
        Of a PDDL file: what is in it.
    """

    name: str
    findings: list[Finding] = field(default_factory=list)
    text: str = ""
    grammar: Grammar | None = None
    knowledge: ActionKnowledge | None = None
    outline: Outline | None = None
    told: list[str] = field(default_factory=list)

    def count(self, severity: str) -> int:
        """The number of findings of a severity."""
        return sum(f.severity == severity for f in self.findings)

    def line(self, span: SourceSpan | None) -> str:
        """The line of the file that a span begins on."""
        lines = self.text.split("\n")
        return lines[span.line - 1] if span and 1 <= span.line <= len(lines) else ""

    @property
    def counts(self) -> str:
        """The number of findings of each severity, in words."""
        return ", ".join(counted(self.count(s), s) for s in SEVERITIES if self.count(s)) or "no findings"

    def _repr_html_(self) -> str:
        rows: list[list[str | int]] = [
            [
                f"{f.span.line}:{f.span.column}" if f.span else "",
                f"{html.badge(f.severity)} {html.code(f.code)}",
                html.escaped(f.message) + self._excerpt(f.span),
                html.escaped(f.why),
                html.escaped(f.fix),
            ]
            for f in self.findings
        ]
        table = html.table(["line", "", "what", "why", "fix"], rows) if rows else ""
        return html.output(html.paragraph(f"<strong>{html.escaped(self.name)}</strong>: {self.counts}"), table)

    def _excerpt(self, span: SourceSpan | None) -> str:
        line = self.line(span)
        if span is None or not line.strip():
            return ""
        first = span.column - 1
        return "<br>" + html.excerpt(line, first, max(first + 1, (span.end or 0) - 1))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"Checked({self.name!r}: {self.counts})")


def check_file(
    text_or_path: str | Path | Source,
    *,
    start: str = "start",
    values: Mapping[str, Any] | None = None,
    tokens: unwritable.TokenCover | None = None,
    tokenizer: str = "the tokenizer",
    tools: list[Tool] | None = None,
    limits: Limits = DEFAULT,
) -> Checked:
    """Find what is, or may be, wrong with a `.lark` file; errors in the file become findings.

    Parameters
    ----------
    text_or_path : str or Path
        As `Grammar.from_lark` takes it.
    start : str
    values : mapping, optional
        Slot -> values, as `Grammar.bind` takes them.
    tokens : TokenCover, optional
        What the model's tokenizer can write; `tokenizer` is its name in messages.
    tools : list of Tool, optional
        The tools, if the file is a policy of tools.
    limits : Limits
    """
    try:
        source = read_source(text_or_path, limits)
    except GrammarError as error:
        finding = Finding("unreadable", error.message, error.hint or "save it as UTF-8 text")
        return Checked(str(text_or_path), [finding])
    check = _Check(source, start, values or {}, limits, tools)
    check.run(tokens, tokenizer)
    check.checked.findings.sort(key=_order)
    return check.checked


class _Check:
    """The check of one file: first its text, then its rules, then its actions; each stage needs those before it."""

    def __init__(self, source: Source, start: str, values: Mapping[str, Any], limits: Limits, tools: list[Tool] | None):
        self.source, self.start, self.values, self.limits, self.tools = source, start, values, limits, tools
        self.checked = Checked(source.name, text=source.text)

    def run(self, tokens: unwritable.TokenCover | None, tokenizer: str) -> None:
        self.checked.outline = outline = read_outline(self.source, self.limits)
        # Stage 1: the text. The loader reports all its errors instead of raising the first.
        faults = Faults(every=True)
        try:
            for fault in outline.faults:
                if isinstance(fault, LimitError):
                    raise fault
            read = read_lark(self.source, self.limits, faults, outline.statements)
        except LimitError as error:
            self.add(refused.refusal(error, self.source))
            return
        except GrammarError as error:  # groups nest too deeply to be read
            faults.append(error)
            read = LarkRules(self.source, {}, frozenset(), {})
        rules = read.rules
        self.add_all(lambda: self.as_written(outline, read.definitions))
        self.add_all(lambda: worlds.world(self.source, self.tools))
        self.add_all(lambda: refused.loader_errors(faults, outline))
        # Stage 2: the rules, if there are any to build a grammar of.
        if faults or outline.faults or self.start not in rules:
            return
        reached = outline.reachable(self.start)
        self.add_all(lambda: self.as_read(rules, outline, reached))
        grammar = self.build(read)
        bound = self.bind(grammar, outline) if grammar is not None else False
        grammar, knowledge = self.checked.grammar, self.checked.knowledge  # bound to the values, if they fit
        if tokens is not None:
            self.add_all(lambda: unwritable.unwritable(outline, reached, self.values, tokens, tokenizer))
            if grammar is not None and bound and not self.has_errors:
                self.add_all(lambda: unwritable.never_whole(grammar, knowledge, outline, tokens, tokenizer, self.start))
        # Stage 3: the actions.
        if knowledge is not None:
            if not self.has_errors and self.tools is None:
                self.add_all(lambda: worlds.out_of_reach(self.source, knowledge.rules))
            graph, productive = knowledge.graph, productive_rules(rules)
            self.add_all(lambda: actions.left_out(outline, graph, reached & productive, self.start))
            self.add_all(lambda: actions.uncommented(outline, self.source.text, graph.actions, self.start))
            if bound:
                self.add_all(lambda: ambiguous(knowledge, outline))

    def add(self, finding: Finding) -> None:
        self.checked.findings.append(finding)

    def add_all(self, find: Callable[[], Iterable[Finding]]) -> None:
        """Add the findings of `find`; if it passes a limit, that is a finding, too."""
        try:
            self.checked.findings.extend(find())
        except (ConstrainedError, RecursionError) as error:
            message = getattr(error, "message", "groups are nested too deeply")
            self.add(Finding("not-checked", f"part of the file was not checked: {message}", "make the file simpler"))

    @property
    def has_errors(self) -> bool:
        return any(f.severity == ERROR for f in self.checked.findings)

    def as_written(self, outline: Outline, definitions: Mapping[str, Definition]) -> Iterator[Finding]:
        """Findings on the text and on imported definitions."""
        start = self.start
        for fault in outline.faults:
            yield refused.syntax(fault, outline.source)
        yield from names.unused_parameters(outline)
        yield from names.repeated_alternatives(outline)
        yield from names.priorities(outline)
        yield from actions.missing_steps(outline, start)
        yield from slips.slips(outline, actions.writing(outline, start))
        # What is used, and what can be written, depends on where texts begin.
        if start in outline.by_name:
            reached = outline.reachable(start)
            yield from names.unused(outline, start, definitions)
            yield from actions.unreachable(outline, start)
            yield from unbounded.endless(outline, reached, definitions)
            yield from productivity.matches_nothing(outline, reached)
        elif start not in outline.guessed:
            defined = [entry.name for entry in outline.definitions if entry.kind == RULE]
            fix = f"write `{start}: {' | '.join(defined[:3]) or '...'}`"
            fix += ", or check it with --start NAME" if defined else ""
            yield Finding("no-start", f"there is no rule '{start}'", fix)

    def as_read(self, rules: dict[str, Rule], outline: Outline, reached: set[str]) -> Iterator[Finding]:
        """Findings on the rules, if they could be read."""
        yield from productivity.never_finish(rules, outline, reached, self.start)
        yield from productivity.only_empty(rules, outline, reached)
        yield from unbounded.nesting(rules, outline, reached & productive_rules(rules))

    def build(self, read: LarkRules) -> Grammar | None:
        """Build the grammar, and the knowledge if there are actions."""
        checked, source = self.checked, self.source
        try:
            checked.grammar = Grammar.from_rules(read, self.start)
            if STEP in read.slots:
                checked.knowledge = ActionKnowledge.from_grammar(checked.grammar, source, self.start)
        except GrammarError as error:
            if not self.has_errors:  # else the cause is reported already
                self.add(refused.refusal(error, source))
        except KnowledgeError as error:
            message = error.message.removeprefix(f"{source.name}: ")
            self.add(Finding("no-actions", message, error.hint or "let start name the actions that may come first"))
        return checked.grammar

    def bind(self, grammar: Grammar, outline: Outline) -> bool:
        """Bind the slots to the values; returns whether that was possible."""
        checked, before = self.checked, len(self.checked.findings)
        self.add_all(lambda: names.bindings(grammar, outline, self.values))
        self.add_all(lambda: names.without_key(outline, self.values))
        if self.values and not any(f.severity == ERROR for f in checked.findings[before:]):
            try:
                checked.grammar = bound = grammar.bind(**self.values)
                if not bound.unbound():
                    _ = bound.automaton  # raises if these values leave no text
                if checked.knowledge is not None:
                    checked.knowledge = checked.knowledge.bind(**self.values)
            except ConstrainedError as error:
                message, fix = error.message.split("\n", 1)[0], error.hint or "bind other values"
                why = "the file can't be used with these values"
                self.add(Finding("slot-without-values", message, fix, why=why))
        return not any(f.severity == ERROR for f in checked.findings[before:])


def _order(finding: Finding) -> tuple[int, int, int]:
    line, column = (finding.span.line, finding.span.column) if finding.span else (0, 0)
    return line, column, SEVERITIES.index(finding.severity)
