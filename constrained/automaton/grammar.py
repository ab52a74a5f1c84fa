"""`Grammar`: a context-free grammar with its automaton, which says what texts it accepts."""

from __future__ import annotations

from constrained.automaton.automaton import Automaton
from constrained.grammar.grammar import ContextFreeGrammar, as_bytes


class Grammar(ContextFreeGrammar):
    """A context-free language of texts, as UTF-8 bytes.

    Use :meth:`from_lark`, :meth:`from_regex`, :meth:`from_choices` or :meth:`from_json_schema`; the attributes
    are those of :class:`constrained.grammar.ContextFreeGrammar`.
    """

    @property
    def automaton(self) -> Automaton:
        """The lazy byte automaton (made once)."""
        return automaton_of(self)

    def matches(self, text: str | bytes) -> bool:
        """Whether the whole text is in the language."""
        state = self.automaton.read(as_bytes(text))
        return state is not None and state.accepting

    def is_prefix(self, text: str | bytes) -> bool:
        """Whether some text of the language begins with `text`."""
        return self.automaton.read(as_bytes(text)) is not None


def automaton_of(grammar: ContextFreeGrammar) -> Automaton:
    """Return the lazy byte automaton of a grammar (made once)."""
    return grammar.derived(Automaton)
