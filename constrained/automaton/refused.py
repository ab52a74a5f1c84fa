"""Errors for objects that are not what is wanted, or can't do what is asked of them."""

from __future__ import annotations

from constrained.errors import ConstrainedError, GrammarError, VocabularyError


def not_a_grammar(given: object) -> GrammarError:
    """The error for an object that is not a grammar; for action knowledge it names its two grammars."""
    of_knowledge = hasattr(given, "next_action")
    return GrammarError(
        f"a grammar is wanted here, not {type(given).__name__}",
        hint="knowledge.next_action() is the grammar of the next action, knowledge.grammar that of whole paths"
        if of_knowledge
        else "make one: Grammar.from_lark(…), .from_regex(…), .from_choices(…) or .from_json_schema(…)",
    )


def not_compiled(given: object) -> GrammarError:
    """The error for an object that is not a compiled grammar."""
    grammar = "knowledge.next_action()" if hasattr(given, "next_action") else "grammar"
    hint = f"pass compile_grammar({grammar}, vocabulary)"
    return GrammarError(f"a compiled grammar is wanted here, not {type(given).__name__}", hint=hint)


def not_a_vocabulary(given: object) -> VocabularyError:
    """The error for an object that is not a vocabulary, such as a tokenizer."""
    hint = "make one: Vocabulary.from_tokenizer(tokenizer); a loaded model has one: loaded.vocabulary"
    return VocabularyError(f"a vocabulary is wanted here, not {type(given).__name__}", hint=hint)


def not_pickled(what: str, otherwise: str) -> ConstrainedError:
    """The error for an object that stands in the memory of this process only."""
    return ConstrainedError(f"{what} can't be pickled: it refers to states in this process", otherwise)
