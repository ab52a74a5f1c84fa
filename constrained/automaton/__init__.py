"""From grammars to token masks: vocabulary, lazy byte automaton, matcher. NumPy only."""

from constrained.automaton.automaton import Grammar
from constrained.automaton.batch import BatchMatcher
from constrained.automaton.matcher import CompiledGrammar, Matcher, compile_grammar
from constrained.automaton.vocabulary import Vocabulary

__all__ = ["BatchMatcher", "CompiledGrammar", "Grammar", "Matcher", "Vocabulary", "compile_grammar"]
