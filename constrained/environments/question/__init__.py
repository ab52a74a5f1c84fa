"""Question answering: look things up in passages, local or live, then answer."""
