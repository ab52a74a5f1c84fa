"""From a `.lark` file and a text to what is said of it: the explanation, and the bytes and tokens that may come next."""

from __future__ import annotations

from collections.abc import Mapping

from constrained.automaton import Vocabulary, compile_grammar
from constrained.errors import GrammarError
from constrained.grammar import STEP, Grammar, read_lark, read_source
from constrained.grammar.relations import stand_ins
from constrained.grammar.source_map import SourceMap
from constrained.knowledge.explain import Explanation, explain_path, explain_text
from constrained.knowledge.knowledge import ActionKnowledge


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
