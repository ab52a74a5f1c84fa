"""`constrained explain`: what may come next after a text and why, or where it dies and what was expected there."""

from __future__ import annotations

from constrained.automaton.explain import quoted
from constrained.automaton.tokenizers import EMBEDDED
from constrained.automaton.vocabulary import open_vocabulary
from constrained.cli.bindings import binding
from constrained.files import to_json
from constrained.grammar.charset import charset, class_text
from constrained.grammar.source_map import Spot
from constrained.knowledge.explain import Expected, Explanation, explain_file, next_tokens

_WITH_LINES = 6
"""Up to so many expected things are shown with their lines of the grammar."""


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "explain",
        help="what may come next after a path or text, and which rule says so; or where it stops fitting",
        description="Read a path of actions, or a text, as far as it fits. Say what may come next, for bytes and for "
        "tokens, and which rule says so; where it stops fitting, what was expected there. Exit code 1 if it does not "
        "fit. A slot that --bind gives no value stands for itself: its value is its name (and another NAME, where that "
        "matters).",
        epilog="example: constrained explain hotpotqa 'Search[Milhouse]->Look'",
    )
    parser.add_argument("grammar", help="shipped name or path of a .lark file")
    parser.add_argument("path", nargs="?", default="", help="actions joined by '->', the last of which may be "
                        "unfinished; the text itself where the grammar has no actions")  # fmt: skip
    parser.add_argument("--text", help="read TEXT as it is, after PATH: one action, whatever it contains")
    parser.add_argument("--start", default="start", help="the rule to start from (default: start)")
    parser.add_argument("--bind", action="append", default=[], metavar="SLOT=JSON",
                        help="bind a slot, e.g. RECEPTACLE='[\"desk 1\"]' (a JSON list, or an object of lists)")  # fmt: skip
    parser.add_argument("--tokenizer", default=EMBEDDED, metavar="NAME", help="whose tokens: a tokenizer.json, the "
                        "folder it is in, or a name of the Hub (default: the embedded model's)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments) -> int:
    vocabulary = open_vocabulary(arguments.tokenizer)
    values = dict(map(binding, arguments.bind))
    explanation, unbound = explain_file(
        arguments.grammar, arguments.path, arguments.text, start=arguments.start, values=values
    )
    data = {**explanation.to_dict(), "unbound": unbound, **next_tokens(explanation, vocabulary)}
    data["tokens"]["tokenizer"] = arguments.tokenizer
    print(to_json(data) if arguments.json else _shown(explanation, data), end="")
    return 0 if explanation.ok else 1


def _shown(explanation: Explanation, data: dict) -> str:
    """The explanation as text."""
    steps = [("ok", step.text) for step in explanation.path]
    if explanation.text:
        steps.append((explanation.verdict, explanation.text))
    shown = [f"{i:>3}  {verdict:<10}  {text}" for i, (verdict, text) in enumerate(steps, 1)]
    blocks = ["\n".join(shown) or "  0  the start"]
    if explanation.reason:
        meant = f"\ndid you mean {' or '.join(map(repr, explanation.meant))}?" if explanation.meant else ""
        blocks.append(explanation.reason + meant)
    elif explanation.follow is not None:
        blocks.append(_following(explanation))
    if explanation.said_by:
        blocks[-1] += f"\n{_spot(explanation.said_by)}"
    if any(item.kind != "end" for item in explanation.expected):
        blocks.append(_expected(explanation))
    blocks.append(_bytes_and_tokens(data))
    if data["unbound"]:
        blocks.append("Not bound, so each stands for itself: " + ", ".join(data["unbound"]))
    return "\n\n".join(blocks) + "\n"


def _following(explanation: Explanation) -> str:
    names = ", ".join(explanation.follow)
    over = "the path may end" if names else "the path is over"
    parts = [f"may follow: {names}" if names else "", over if explanation.may_end else ""]
    return "; or ".join(part for part in parts if part) or "nothing may follow, and the path may not end"


def _expected(explanation: Explanation) -> str:
    items = explanation.expected
    with_lines = len(items) <= _WITH_LINES
    lines = ["expected there:" if explanation.reason else "what may come next:"]
    width = max(len(_words(item)) for item in items)
    # what %ignore admits may come at the end of many rules at once
    for item in {(_words(i), i.spot and (i.spot.definition, i.spot.line, i.spot.column)): i for i in items}.values():
        if item.spot is None:
            lines.append(f"  {_words(item)}")
        elif with_lines:
            lines += [f"  {_words(item)}", _spot(item.spot)]
        else:
            lines.append(f"  {_words(item):<{width}}  {item.spot}")
    return "\n".join(lines)


def _words(item: Expected) -> str:
    if item.slot is None:
        return item.text
    return f"{item.slot}: {item.text}" + (f" ({item.count} values)" if item.count > 1 else "")


def _spot(spot: Spot) -> str:
    return "\n".join(f"      {line}" for line in (str(spot), *spot.context.splitlines()))


def _bytes_and_tokens(data: dict) -> str:
    tokens = data["tokens"]
    lines = [f"next byte:   {_bytes(data['bytes'])}"]
    named = [
        f"{one['id']} " + ("(end of text)" if one["text"] is None else repr(one["text"])) for one in tokens["first"]
    ]
    more = ["..."] if tokens["allowed"] > len(named) else []
    count = f"{tokens['allowed']:,} of {tokens['size']:,} ({tokens['tokenizer']})"
    lines.append(f"next token:  {count}" + (f": {', '.join(named + more)}" if named else ""))
    if data["forced"]:
        lines.append(f"forced text: {quoted(data['forced'])}")
    return "\n".join(lines)


def _bytes(values: list[int]) -> str:
    ascii_ = [b for b in values if b < 0x80]
    parts = (
        [repr(chr(ascii_[0])) if len(ascii_) == 1 else class_text(charset((b, b) for b in ascii_))] if ascii_ else []
    )
    if len(values) > len(ascii_):
        parts.append(f"{len(values) - len(ascii_)} of those above 0x7f")
    return " and ".join(parts) or "none"
