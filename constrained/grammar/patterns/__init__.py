"""Languages of characters: what a string's patterns and formats have in common, or leave out.

`ecma` reads patterns, `formats` holds those of RFCs: both as trees of characters. `trees` says what a tree plainly
shows of its texts. The nondeterministic automaton of a tree (`finite_automata`) tells whether a text has the pattern;
what several patterns have in common is one automaton, deterministic where that is small enough (`character_automata`).
JSON Schemas alone use them; `grammar.regex` reads the regular expressions of `.lark` files.
"""
