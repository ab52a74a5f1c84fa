"""Read one file for an editor: the findings of `constrained check`, and a card for every name.

The server runs this module in a child process: a file that is being typed may cost any time and memory.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from constrained.grammar import STEP
from constrained.grammar.lark_outline import IMPORT, SLOT, OutlineEntry, rule_comments
from constrained.grammar.lark_tokens import comments
from constrained.grammar.source import Source
from constrained.knowledge.action_graph import START
from constrained.knowledge.base import Knowledge
from constrained.knowledge.description import successors
from constrained.knowledge.lint import check_file
from constrained.language_server.semantic import tokens
from constrained.subprocesses import serve

MOST_FINDINGS = 200
"""Findings that an editor is given at once."""

MOST_WORDS = 1000
"""Characters of each part of a card."""


def read(text: str, name: str, path: Path | None) -> dict:
    """Read a file.

    Parameters
    ----------
    text : str
        As it is in the editor, saved or not.
    name : str
        For messages.
    path : Path or None
        Where the file is kept: relative imports start there.

    Returns
    -------
    dict
        "findings": as of `Finding.to_dict`, with one-based lines and columns of characters; "names": each defined
        name -> its "line", "column" and "end", and "words" about it in Markdown; "tokens": as of `semantic.tokens`;
        "loads": whether the file can be used.
    """
    source = Source(text, name, path)
    checked = check_file(source)
    outline = checked.outline
    assert outline is not None  # of a text, there is always one
    behind = {comment.line: comment.text for comment in comments(text) if not comment.alone}
    words = rule_comments(text) | {slot: behind.get(span.line, "") for slot, span in outline.declared.items()}
    names = {}
    for called, (definition, *_) in outline.by_name.items():
        span = definition.span
        card = _card(definition, words.get(called, ""), checked.knowledge)
        names[called] = {"line": span.line, "column": span.column, "end": span.end, "words": card}
    findings = [finding.to_dict(name, "") for finding in checked.findings[:MOST_FINDINGS]]
    return {
        "findings": findings, "names": names, "tokens": tokens(outline, checked.knowledge),
        "loads": checked.grammar is not None,
    }  # fmt: skip


def _card(definition: OutlineEntry, words: str, knowledge: Knowledge | None) -> str:
    """What a name is, its comment, and for an action, what may follow."""
    name, graph = definition.name, knowledge.graph if knowledge else None
    action = graph is not None and name in graph.actions
    kind = definition.kind
    if action:
        kind = "action"
    elif kind == SLOT:
        kind = "end of an action" if name == STEP else "slot, bound at run time"
    elif kind == IMPORT:
        kind = f"imported from {definition.library.rpartition('.')[0]}"
    parameters = f"{{{', '.join(definition.params)}}}" if definition.params else ""
    parts = [f"**{name}**{_plain(parameters)}: {kind}"]
    if words:
        parts.append(_plain(words))
    if graph is not None and (action or name == graph.start):
        parts.append(f"{'then' if action else 'first'}: {_plain(successors(graph, name if action else START))}")
    return "\n\n".join(parts)


def _plain(text: str) -> str:
    """Text escaped for Markdown, and cut to what a card holds."""
    text = text if len(text) <= MOST_WORDS else text[:MOST_WORDS] + "…"
    return re.sub(r"([\\`*_{}\[\]()#+!|<>~-])", r"\\\1", text)


def main() -> None:
    """Serve readings; run in the child process."""
    warnings.simplefilter("ignore", FutureWarning)  # of `re`, about syntax that may change
    serve(
        lambda request, send: send(
            read(request["text"], request["name"], Path(request["path"]) if request["path"] else None)
        )
    )
