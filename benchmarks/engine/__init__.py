"""Our engine beside its peers: the same vocabularies, grammars and texts, each engine in a process of its own."""
