"""Explain why a text is admitted or not: what may come next, and the rule that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import Any

from constrained.automaton import Grammar, Vocabulary, compile_grammar, positions
from constrained.automaton.explain import Trace, expected_text
from constrained.automaton.state import Prefix
from constrained.errors import GrammarError, KnowledgeError
from constrained.grammar import STEP, read_lark, read_source
from constrained.grammar.nodes import Related, Slot, Var
from constrained.grammar.source import Source, SourceSpan
from constrained.grammar.source_map import SourceMap
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.base import Knowledge
from constrained.knowledge.path_state import PathState, action_bytes
from constrained.knowledge.report import Judgement
from constrained.knowledge.unordered import UnorderedActions, longest_prefix
from constrained.knowledge.world import read_world
from constrained.knowledge.world.belief_state import BeliefState

ARROW = "->"
"""Between the actions of a written path (KnowAgent's ActionPath)."""

_SIMILAR = 0.6
"""How similar (0 to 1) a text must be to an action's beginning for the action to be suggested."""

_IMPOSSIBLE = 12
"""How many actions that are not possible now are listed with what they need."""

_QUOTED = 40
"""How many characters of a text are quoted."""


@dataclass(frozen=True)
class Expected:
    """Something that may come next."""

    text: str  # in words: texts in quotes, characters as a regular expression, or an end
    kind: str  # "text", "value" (of a slot or parameter), "characters" or "end"
    spot: SourceSpan | None  # the rule that says so; None for the end of the whole text
    slot: str | None = None  # the slot of a value
    count: int = 1  # how many texts there are to choose from


@dataclass
class Explanation:
    """Why one text is admitted or not."""

    path: list[Judgement]  # the actions before, all ok
    text: str  # the text or the last action
    read: bytes  # its longest prefix that fits
    verdict: str  # "complete", "unfinished", or what is wrong: "invalid", "misordered"
    reason: str = ""  # why it is wrong; empty if it isn't
    expected: list[Expected] = field(default_factory=list)  # what may come after `read`
    follow: list[str] | None = None  # after a complete action: the actions that may follow it
    may_end: bool = False  # after a complete action: whether the path may end
    said_by: SourceSpan | None = None  # the rule that says what may follow, if that decides
    meant: list[str] = field(default_factory=list)  # the beginnings of similar actions
    grammar: Grammar | None = None  # the grammar by which `read` was read; None if nothing more may come
    # if facts are known: actions that begin with the text but are not possible now -> what they need
    impossible: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong so far."""
        return not self.reason

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data = {name: value for name, value in vars(self).items() if name != "grammar"}
        data["read"] = _decoded(self.read)
        data["path"] = [asdict(step) for step in self.path]
        data["expected"] = [
            {**vars(item), "spot": item.spot.to_dict() if item.spot else None} for item in self.expected
        ]
        data["said_by"] = self.said_by.to_dict() if self.said_by else None
        return {"ok": self.ok, **data}


def explain_file(
    text_or_path: str | Path | Source,
    path: str = "",
    text: str | None = None,
    *,
    start: str = "start",
    values: Mapping[str, Any] | None = None,
) -> tuple[Explanation, list[str]]:
    """Explain a path of actions, or a text, by a `.lark` file, and by the facts of its problem if it has one.

    Parameters
    ----------
    text_or_path : str, Path or Source
        As `Grammar.from_lark` takes it.
    path : str
        Actions joined by ``->``; the last may be unfinished. If the grammar has no actions, the text itself.
    text : str, optional
        One more action after `path`; it may contain ``->``.
    start : str
        The rule to start from.
    values : mapping, optional
        Slot -> values, as `Grammar.bind` takes them. The value of any other slot is its own name (and "another NAME",
        where two are needed).

    Returns
    -------
    explanation : Explanation
    unbound : list of str
        The slots whose values are their names.

    Raises
    ------
    GrammarError, KnowledgeError
        The file can't be read, or the values can't be bound.
    """
    source = read_source(text_or_path)
    # The grammar is built from the map's own copy of the rules: its nodes are found in the map by identity.
    source_map = SourceMap(read_lark(source))
    grammar = Grammar.from_rules(source_map.read, start)
    if STEP in grammar.slots:
        knowledge = ActionKnowledge.from_grammar(
            grammar, source, start, source_map=source_map, world=read_world(source)
        ).bind(**values or {})
        if knowledge.own_world is not None:
            knowledge = knowledge.with_facts(BeliefState(knowledge.own_world).facts_now())
        unbound = knowledge.grammar.unbound()
        return explain_path(knowledge.bind(**knowledge.grammar.stand_ins()), path, text), unbound
    # A grammar without `_STEP` has one text, not a path of actions.
    if text is not None and path:
        raise GrammarError(
            "give either a text or --text, not both", hint="this grammar has no actions, so there is no path"
        )
    grammar = grammar.bind(**values or {})
    unbound = grammar.unbound()
    grammar = grammar.bind(**grammar.stand_ins())
    return explain_text(grammar, source_map, path if text is None else text), unbound


def explain_text(grammar: Grammar, source_map: SourceMap, text: str) -> Explanation:
    """Explain `text` as a text of `grammar`, which was built from the rules of `source_map`."""
    data = action_bytes(text)
    trace = Trace(grammar.automaton)
    read = trace.read(data)
    complete = any(isinstance(p, (positions.Accept, positions.StepEnd)) for p in trace.at)
    out = Explanation([], text, data[:read], "complete" if complete else "unfinished", grammar=grammar)
    out.expected = _expected(trace, source_map)
    if read < len(data):
        out.verdict = "invalid"
        out.reason = f"stops fitting after {_decoded(out.read)!r}: {_quoted(data[read:])} can't come there"
    return out


def explain_path(knowledge: Knowledge, text: str, last: str | None = None) -> Explanation:
    """Explain a path, its actions joined by ``->``, up to its first wrong action or to its end.

    `knowledge`: read with its source map; the path continues from its state. `last`: the last action, which may contain
    ``->``; then `text` is the actions before it. The last action may be unfinished.
    """
    source_map = knowledge.source_map
    if source_map is None:
        raise KnowledgeError(
            f"{knowledge.name} was read without its source map", hint="from_lark(..., source_map=True)"
        )
    done, state, rest = _walk(knowledge.state.order, text if last is None or not text else text + ARROW)
    if last is None or rest:
        last = rest
    # The rules admit the actions before; the facts may not.
    for number, step in enumerate(done if knowledge.facts is not None else ()):
        judged = knowledge.judge(step.text)
        if not judged:
            return Explanation(done[:number], step.text, b"", judged.verdict, judged.reason)
        knowledge = knowledge.after(step.text)
    # What may come next by the rules, and how much of the last text fits.
    data = action_bytes(last)
    try:
        grammar = state.next_action()
    except KnowledgeError:
        out = Explanation(done, last, b"", "complete" if state.may_end else "unfinished")
    else:
        out = explain_text(grammar, source_map, last)
        out.path = done
    # Then one of three cases: a whole action, no text yet, or a text that doesn't fit.
    before = source_map.after_step(state.last) if state.path else source_map.rule_span(state.graph.start)
    judgement = state.judge(last) if data and out.ok else None
    if judgement and judgement.action is not None:  # a whole action
        after = state.after(last)
        out.follow, out.may_end = after.may_follow, after.may_end
        out.said_by = source_map.after_step(judgement.action)
    elif not data:
        out.verdict = "complete" if state.may_end else "unfinished"
        out.follow, out.may_end = state.may_follow, state.may_end
        out.said_by = before
    elif not out.ok or out.grammar is None:
        _explain_mismatch(out, state, data)
        if out.verdict == "misordered" or not out.read:
            out.said_by = before
    # The facts can only narrow what the rules admit.
    if out.ok and knowledge.facts is not None:
        _explain_by_facts(out, knowledge, source_map, whole=bool(judgement and judgement.action is not None))
    return out


def _explain_by_facts(out: Explanation, knowledge: Knowledge, source_map: SourceMap, whole: bool) -> None:
    """Narrow an explanation to what is possible by the facts; `whole`: the text is a whole action."""
    facts = knowledge.facts
    assert facts is not None
    try:
        possible: Grammar | None = knowledge.next_action()
    except KnowledgeError:
        possible = None
    data, trace = action_bytes(out.text), None if possible is None else Trace(possible.automaton)
    # No possible action begins so: say what the actions that do would need.
    if trace is None or trace.read(data) < len(data):
        judged = knowledge.judge(out.text)
        out.verdict = judged.verdict if whole else out.verdict
        out.reason = judged.reason if whole else "nothing that begins so is possible now" if data else ""
        out.grammar, out.expected, out.follow = None, [], out.follow and []
        out.impossible = {} if whole else dict(islice(facts.impossible(out.text).items(), _IMPOSSIBLE))
        out.may_end = not data and knowledge.may_end
        return
    # What may come next is listed by the rules, as only their nodes have places; what is impossible is left out.
    if not whole and out.grammar is not None:
        by_rules = Trace(out.grammar.automaton)
        by_rules.read(data)
        by_rules.at = {position: frames for position, frames in by_rules.at.items() if _is_possible(position, trace)}
        out.expected = _expected(by_rules, source_map)
    out.grammar = possible
    if whole:
        knowledge = knowledge.after(out.text)
    if out.follow is not None:
        out.follow, out.may_end = knowledge.may_follow, knowledge.may_end
    assert knowledge.facts is not None
    later = knowledge.facts.impossible("" if whole else out.text)
    out.impossible = dict(islice(later.items(), _IMPOSSIBLE))


def _is_possible(position: positions.Position, possible: Trace) -> bool:
    """Whether some possible action continues with the next byte of a literal; True for other positions."""
    if not isinstance(position, positions.InLiteral):
        return True
    return any(p.step(possible.automaton.closure, position.data[position.at]) for p in possible.at)


def _walk(state: PathState, text: str) -> tuple[list[Judgement], PathState, str]:
    """Read whole actions: their judgements, the state after them, and the rest of the text."""
    done: list[Judgement] = []
    if text == "Start" or text.startswith(f"Start{ARROW}"):
        text = text[len(f"Start{ARROW}") :]
    while ARROW in text:
        action, rest = _first_action(state, text)
        if action is None:
            return done, state, rest
        done.append(state.judge(action))
        state, text = state.after(action), rest
    return done, state, text


def _first_action(state: PathState, text: str) -> tuple[str | None, str]:
    """The action at the beginning of `text` that ends before an arrow, and the text after the arrow.

    An action may contain arrows. If none ends before an arrow: None, and the part that is unfinished or wrong.
    """
    ends, all_fits = _action_ends(state, text)
    at = text.find(ARROW)
    while at >= 0 and len(text[:at].rstrip()) <= max(ends, default=0):  # no text has more characters than bytes
        for head in dict.fromkeys((text[:at], text[:at].rstrip())):
            if head and len(action_bytes(head)) in ends:
                return head, text[at + len(ARROW) :].lstrip()
        at = text.find(ARROW, at + 1)
    return None, text if all_fits else text.split(ARROW)[0].rstrip() or ARROW


def _action_ends(path_state: PathState, text: str) -> tuple[set[int], bool]:
    """The numbers of bytes of `text` after which an action is complete, and whether an action may begin with it all."""
    ends: set[int] = set()
    try:
        state: Prefix | None = path_state.next_action().begin
    except KnowledgeError:
        return ends, False
    for count, byte in enumerate(action_bytes(text), 1):
        state = state.step(byte) if state else None
        if state is None:
            return ends, False
        if state.accepting:
            ends.add(count)
    return ends, True


def _explain_mismatch(out: Explanation, state: PathState, data: bytes) -> None:
    """Set the verdict and the reason for an action that does not fit here, and what may have been meant."""
    judgement = state.judge(out.text)
    out.verdict, out.reason = judgement.verdict, judgement.reason
    if judgement.verdict != "invalid":
        return
    unordered = UnorderedActions(state.grammar, state.graph)
    openings = {action: opening for action in state.graph.actions if (opening := unordered.opening(action))}
    elsewhere = [action for action, opening in openings.items() if longest_prefix(opening, data)[1] == len(data)]
    if elsewhere:  # the beginning of an action that may not come here
        out.verdict = "misordered"
        allowed = ", ".join(state.may_follow) or "nothing"
        out.reason = f"this is how {' or '.join(elsewhere)} begins, which is not admitted here; may follow: {allowed}"
    else:
        out.meant = _similar(out.text, openings.values())


def _similar(text: str, openings: Iterable[Prefix]) -> list[str]:
    """The beginnings of actions that are most similar to `text`, at most two."""
    ratios = {}
    for state in openings:
        beginning = _decoded(state.forced_text())
        if beginning and not text.startswith(beginning):
            matcher = SequenceMatcher(None, text[: len(beginning) + 1].casefold(), beginning.casefold())
            ratios[beginning] = matcher.ratio()
    return [b for b in sorted(ratios, key=ratios.__getitem__, reverse=True)[:2] if ratios[b] >= _SIMILAR]


def _expected(trace: Trace, source_map: SourceMap) -> list[Expected]:
    """What may come after the text traced, in the file's order; ends come last."""

    def order(e: Expected) -> tuple:
        return e.kind == "end", e.spot is None, e.spot and (e.spot.line, e.spot.column), e.text

    expected = (_expected_at(p, frame, source_map) for p, frames in trace.at.items() for frame in frames)
    return sorted(dict.fromkeys(expected), key=order)


def _expected_at(position: positions.Position, frame: positions.Frame | None, source_map: SourceMap) -> Expected:
    if frame is None:
        return Expected("the end of the text", "end", None)
    # The frame's node says what is being read: a slot's value, a parameter's, or text of a rule.
    node = frame.node
    spot = source_map.span(node, position.at if isinstance(position, positions.InLiteral) else 0)
    if isinstance(position, positions.StepEnd):
        return Expected("the end of the action", "end", spot)
    text = expected_text(position)
    count = position.high - position.low if isinstance(position, positions.InChoices) else 1
    match node:
        case Slot():
            return Expected(text, "value", spot, node.name, count)
        case Related():
            return Expected(text, "value", spot, node.slot.name, count)
        case Var():  # a parameter: the slots that it may stand for
            return Expected(text, "value", spot, " or ".join(source_map.slots_of(node)) or None, count)
    if isinstance(position, positions.InText):
        return Expected(text, "characters", spot)
    return Expected(text, "text", spot, None, count)


def next_tokens(explanation: Explanation, vocabulary: Vocabulary, most: int = 12) -> dict[str, Any]:
    """The bytes and tokens that may come next, and the text that must come next.

    Parameters
    ----------
    explanation : Explanation
    vocabulary : Vocabulary
    most : int
        How many allowed tokens to list.

    Returns
    -------
    dict
        "bytes": their values, ascending; "forced": the text that must come next; "tokens": the "size" of the
        vocabulary, how many tokens are "allowed", and the "first" of them, each with "id" and "text" (None: it ends the
        text).
    """
    if explanation.grammar is None:
        return {"bytes": [], "forced": "", "tokens": {"size": vocabulary.size, "allowed": 0, "first": []}}
    matcher = compile_grammar(explanation.grammar, vocabulary).matcher(explanation.read)
    allowed = matcher.allowed_token_ids().tolist()
    ends = set(vocabulary.eos_token_ids)
    first = [
        {"id": i, "text": vocabulary.tokens[i].decode("utf-8", "backslashreplace") if i not in ends else None}
        for i in allowed[:most]
    ]
    return {
        "bytes": sorted(matcher.prefix.first()),
        "forced": _decoded(matcher.forced_text()),
        "tokens": {"size": vocabulary.size, "allowed": len(allowed), "first": first},
    }


def _quoted(data: bytes) -> str:
    text = _decoded(data)
    return repr(text) if len(text) <= _QUOTED else f"{text[:_QUOTED]!r}..."


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
