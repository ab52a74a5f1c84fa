"""Why a text is admitted or not: what may come next, and which rule says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher

from constrained.automaton import Vocabulary, compile_grammar
from constrained.automaton import positions as p
from constrained.automaton.explain import Trace, expected_text
from constrained.errors import GrammarError, KnowledgeError
from constrained.grammar import STEP, Grammar, read_lark, read_source
from constrained.grammar import nodes as n
from constrained.grammar.relations import stand_ins
from constrained.grammar.source_map import SourceMap, Spot
from constrained.knowledge.action_knowledge import ActionKnowledge, action_bytes
from constrained.knowledge.diagnosis import fitting
from constrained.knowledge.report import Judgement
from constrained.knowledge.unordered import Anywhere

ARROW = "->"
"""Between the actions of a written path (KnowAgent's ActionPath)."""

_ALIKE = 0.6
"""How alike (0 to 1) a text and an action's beginning must be for the one to be meant by the other."""
_QUOTED = 40
"""Characters of a text that are quoted."""


@dataclass(frozen=True)
class Expected:
    """Something that may come next.

    Attributes
    ----------
    text : str
        In words: texts in quotes, characters as a regular expression, or an end.
    kind : str
        "text", "value" (of a slot or parameter), "characters" or "end".
    spot : Spot or None
        The rule that says so; None for the end of the whole text.
    slot : str or None
        The slot that a value is of.
    count : int
        How many texts there are to choose from.
    """

    text: str
    kind: str
    spot: Spot | None
    slot: str | None = None
    count: int = 1


@dataclass
class Explanation:
    """What is to be said of one text.

    Attributes
    ----------
    path : list of Judgement
        The actions before, all ok.
    text : str
        The text, or the last action, itself.
    read : bytes
        As much of it as fits.
    verdict : str
        "complete", "unfinished", or what is wrong: "invalid", "misordered".
    reason : str
        Why it is wrong; empty where it isn't.
    expected : list of Expected
        What may come after `read`.
    follow : list of str or None
        Where an action is complete: the actions that may come after it.
    may_end : bool
        Where it is: the path may be over then.
    said_by : Spot or None
        The rule that says what may follow, where that is what matters.
    meant : list of str
        Beginnings of actions that the text is like.
    grammar : Grammar or None
        What `read` is read by; None where nothing may come any more.
    """

    path: list[Judgement]
    text: str
    read: bytes
    verdict: str
    reason: str = ""
    expected: list[Expected] = field(default_factory=list)
    follow: list[str] | None = None
    may_end: bool = False
    said_by: Spot | None = None
    meant: list[str] = field(default_factory=list)
    grammar: Grammar | None = None

    @property
    def ok(self) -> bool:
        """Nothing is wrong so far."""
        return not self.reason

    def to_dict(self) -> dict:
        """Plain data for JSON."""
        data = {name: value for name, value in vars(self).items() if name != "grammar"}
        data["read"] = _text(self.read)
        data["path"] = [asdict(step) for step in self.path]
        data["expected"] = [asdict(item) for item in self.expected]
        data["said_by"] = asdict(self.said_by) if self.said_by else None
        return {"ok": self.ok, **data}


def explain_text(grammar: Grammar, written: SourceMap, text: str) -> Explanation:
    """Explain `text` as a text of `grammar`, whose rules are those of `written`."""
    data = action_bytes(text)
    trace = Trace(grammar.automaton)
    read = trace.read(data)
    verdict = "complete" if any(isinstance(q, (p.Accept, p.StepEnd)) for q in trace.at) else "unfinished"
    out = Explanation([], text, data[:read], verdict, grammar=grammar)
    out.expected = _expected(trace, written)
    if read < len(data):
        out.verdict = "invalid"
        out.reason = f"stops fitting after {_text(out.read)!r}: {_start(data[read:])} can't come there"
    return out


def explain_path(knowledge: ActionKnowledge, text: str, last: str | None = None) -> Explanation:
    """Explain a path, its actions joined by ``->``, up to what is wrong or to its end, which may be unfinished.

    With `last` that is the end, as it stands, and all of `text` comes before it. The path goes on from where
    `knowledge`, which must be read with its spots, is.
    """
    written = knowledge.written
    done, place, left = _walk(knowledge, text if last is None or not text else text + ARROW)
    if last is None or left:
        last = left
    data = action_bytes(last)
    try:
        grammar = place.next_action()
    except KnowledgeError:
        out = Explanation(done, last, b"", "complete" if place.may_end else "unfinished")
    else:
        out = explain_text(grammar, written, last)
        out.path = done
    before = written.after_step(place.last) if place.path else written.of_rule(place.graph.start)
    whole = data and out.ok and place.judge(last)
    if whole:
        after = place.after(last)
        out.follow, out.may_end = after.may_follow, after.may_end
        out.said_by = written.after_step(whole.action)
    elif not data:
        out.verdict = "complete" if place.may_end else "unfinished"
        out.follow, out.may_end = place.may_follow, place.may_end
        out.said_by = before
    elif not out.ok or out.grammar is None:
        _say_why(out, place, data)
        if out.verdict == "misordered" or not out.read:
            out.said_by = before
    return out


def _walk(knowledge: ActionKnowledge, text: str) -> tuple[list[Judgement], ActionKnowledge, str]:
    """The actions that are done and ok, the place after them, and the action that comes then."""
    done, place = [], knowledge
    if text == "Start" or text.startswith(f"Start{ARROW}"):
        text = text[len(f"Start{ARROW}") :]
    while ARROW in text:
        action, left = _first_action(place, text)
        if action is None:
            return done, place, left
        done.append(place.judge(action))
        place, text = place.after(action), left
    return done, place, text


def _first_action(place: ActionKnowledge, text: str) -> tuple[str | None, str]:
    """The action that `text` begins with, which an arrow ends, and what comes after.

    An action may hold arrows, too. If none ends so: None, and what is begun or wrong.
    """
    ends, whole = _ends(place, text)
    at = text.find(ARROW)
    while at >= 0 and len(text[:at].rstrip()) <= max(ends, default=0):  # no text has more characters than bytes
        for head in dict.fromkeys((text[:at], text[:at].rstrip())):
            if head and len(action_bytes(head)) in ends:
                return head, text[at + len(ARROW) :].lstrip()
        at = text.find(ARROW, at + 1)
    return None, text if whole else text.split(ARROW)[0].rstrip() or ARROW


def _ends(place: ActionKnowledge, text: str) -> tuple[set[int], bool]:
    """After how many bytes of `text` an action is complete, and whether all of it is the beginning of one."""
    ends: set[int] = set()
    try:
        state = place.next_action().automaton.start
    except KnowledgeError:
        return ends, False
    for count, byte in enumerate(action_bytes(text), 1):
        state = state.step(byte)
        if state is None:
            return ends, False
        if state.accepting:
            ends.add(count)
    return ends, True


def _say_why(out: Explanation, place: ActionKnowledge, data: bytes) -> None:
    """Verdict and reason of an action that does not fit here, and what may have been meant."""
    judgement = place.judge(out.text)
    out.verdict, out.reason = judgement.verdict, judgement.reason
    anywhere = Anywhere(place.grammar, place.graph)
    begins = {action: state for action in place.actions if (state := anywhere.action(action))}
    if judgement.verdict == "invalid":
        elsewhere = [action for action, state in begins.items() if fitting(state, data)[1] == len(data)]
        if elsewhere:  # an action begun that may not come here
            out.verdict = "misordered"
            what = " or ".join(elsewhere)
            out.reason = (
                f"this is how {what} begins, which is not admitted here; may follow: {_names(place.may_follow)}"
            )
        else:
            out.meant = _meant(out, begins)


def _meant(out: Explanation, begins: dict) -> list[str]:
    alike = []
    for state in begins.values():
        opening = _text(state.forced_text())
        matcher = SequenceMatcher(None, out.text[: len(opening) + 1].casefold(), opening.casefold())
        if opening and not out.text.startswith(opening):
            alike.append((matcher.ratio(), opening))
    return [opening for ratio, opening in sorted(alike, key=lambda one: -one[0])[:2] if ratio >= _ALIKE]


def _expected(trace: Trace, written: SourceMap) -> list[Expected]:
    """What may come after the text traced, in the order it is written."""
    found: dict[Expected, None] = {}
    for q, frames in trace.at.items():
        for frame in frames:
            found[_one(q, frame, written)] = None
    return sorted(
        found,
        key=lambda e: (e.kind == "end", e.spot is None, e.spot and (e.spot.line or 0, e.spot.column or 0), e.text),
    )


def _one(q: p.Position, frame: p.Frame | None, written: SourceMap) -> Expected:
    if frame is None:
        return Expected("the end of the text", "end", None)
    node = frame.node
    spot = written.spot(node, q.at if isinstance(q, p.InLiteral) else 0)
    if isinstance(q, p.StepEnd):
        return Expected("the end of the action", "end", spot)
    if isinstance(node, (n.Slot, n.Var, n.Related)):
        count = q.high - q.low if isinstance(q, p.InChoices) else 1
        return Expected(expected_text(q), "value", spot, _slot(q, frame, written), count)
    if isinstance(q, p.InText):
        return Expected(expected_text(q), "characters", spot)
    return Expected(expected_text(q), "text", spot, None, q.high - q.low if isinstance(q, p.InChoices) else 1)


def _slot(q: p.Position, frame: p.Frame, written: SourceMap) -> str | None:
    """The slot whose value is read at `q`; for a parameter, the one that it stands for."""
    if isinstance(frame.node, n.Slot):
        return frame.node.name
    if isinstance(frame.node, n.Related):
        return frame.node.slot.name
    slots = written.slots_of(frame.node)
    return " or ".join(slots) or None


def _start(data: bytes) -> str:
    """The beginning of what does not fit."""
    text = _text(data)
    return repr(text) if len(text) <= _QUOTED else f"{text[:_QUOTED]!r}..."


def _names(actions) -> str:
    return ", ".join(actions) or "nothing"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def explain_file(
    text_or_path,
    path: str = "",
    text: str | None = None,
    *,
    start: str = "start",
    values: Mapping | None = None,
) -> tuple[Explanation, list[str]]:
    """Explain a path of actions, or a text, by a `.lark` file.

    Parameters
    ----------
    text_or_path : str, Path or Source
        As `Grammar.from_lark` takes it.
    path : str
        Actions joined by ``->``, the last of which may be unfinished; the text itself where the grammar has no actions.
    text : str, optional
        What comes after `path`, read as it is: one action, whatever it contains.
    start : str
        The rule to start from.
    values : mapping, optional
        Slot -> values, as `Grammar.bind` takes them. A slot without values stands for itself: its value is its name
        (and another NAME, where that matters).

    Returns
    -------
    Explanation
    list of str
        The slots that stand for themselves.

    Raises
    ------
    GrammarError, KnowledgeError
        The file can't be read, or the values can't be bound.
    """
    source = read_source(text_or_path)
    rules, slots = read_lark(source)
    if STEP in slots:
        knowledge = ActionKnowledge.from_lark(source, start, spots=True).bind(**values or {})
        unbound = knowledge.grammar.unbound()
        return explain_path(knowledge.bind(**stand_ins(knowledge.grammar)), path, text), unbound
    if text is not None and path:
        raise GrammarError(
            "give a text or --text, one of the two", hint="this grammar has no actions to make a path of"
        )
    written = SourceMap(source, rules)
    grammar = Grammar.from_rules(written.rules, slots, start, source).bind(**values or {})
    unbound = grammar.unbound()
    grammar = grammar.bind(**stand_ins(grammar))
    return explain_text(grammar, written, path if text is None else text), unbound


def what_comes(explanation: Explanation, vocabulary: Vocabulary, most: int = 12) -> dict:
    """The bytes and tokens that may come next, and what must.

    Parameters
    ----------
    explanation : Explanation
    vocabulary : Vocabulary
    most : int
        Allowed tokens that are listed.

    Returns
    -------
    dict
        "bytes": their values, ascending; "forced": the text that must come, whatever is chosen; "tokens": the
        vocabulary's "size", how many are "allowed", and the "first" of them, each with "id" and "text" (None: it
        ends the text).
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
        "bytes": sorted(matcher.state.first()),
        "forced": matcher.forced_text().decode("utf-8", "replace"),
        "tokens": {"size": vocabulary.size, "allowed": len(allowed), "first": first},
    }
