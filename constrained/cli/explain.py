"""`constrained explain`: what may come next after a path or text and why, or where it stops fitting."""

from __future__ import annotations

from constrained.automaton.explain import quoted
from constrained.automaton.tokenizers import EMBEDDED
from constrained.automaton.vocabulary import open_vocabulary
from constrained.cli.options import KNOWLEDGE, TOKENIZERS, add_bindings, add_start, bindings
from constrained.cli.parser import examples
from constrained.files import to_json
from constrained.grammar.charset import charset, class_text
from constrained.grammar.source import SourceSpan
from constrained.knowledge.explain import Expected, Explanation, explain_file, next_tokens
from constrained.waiting import waiting

_WITH_LINES = 6
"""If at most this many things are expected, each is shown with its line of the grammar."""


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "explain",
        help="say what may come next after a path or text, and which rule says so",
        description="Read a path of actions, or a text, as far as the grammar admits it. Show what may come next, as "
        "bytes and as tokens, and which rule says so; or where it stops being admitted, and what was expected there "
        "(exit code 1). In a world, also say which conditions keep actions from being possible. A slot without --bind "
        "stands for itself.",
        epilog=examples("constrained explain hotpotqa 'Search[Milhouse]->Look'", "constrained explain den.lark"),
    )
    add = parser.add_argument
    add("grammar", metavar="FILE", help=KNOWLEDGE)
    words = "actions joined by ->, the last may be unfinished; the text itself if the grammar has no actions"
    add("path", nargs="?", default="", metavar="PATH", help=words)
    words = "after PATH, read TEXT as one action, even if it contains ->"
    add("--text", metavar="TEXT", help=words)
    add_start(parser)
    add_bindings(parser)
    words = f"the tokenizer whose tokens are shown: {TOKENIZERS} (default: embedded)"
    add("--tokenizer", default=EMBEDDED, metavar="NAME", help=words)
    add("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments) -> int:
    with waiting("reading the tokenizer", not arguments.json):
        vocabulary = open_vocabulary(arguments.tokenizer)
    explanation, unbound = explain_file(
        arguments.grammar, arguments.path, arguments.text, start=arguments.start, values=bindings(arguments)
    )
    data = {**explanation.to_dict(), "unbound": unbound, **next_tokens(explanation, vocabulary)}
    data["tokens"]["tokenizer"] = arguments.tokenizer
    print(to_json(data) if arguments.json else _text(explanation, data), end="")
    return 0 if explanation.ok else 1


def _text(explanation: Explanation, data: dict) -> str:
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
    if explanation.impossible:
        lines = (f"  {text}: {why}" for text, why in explanation.impossible.items())
        blocks.append("\n".join(["can't be done now:", *lines]))
    blocks.append(_bytes_and_tokens(data))
    if data["unbound"]:
        blocks.append("Not bound, so each stands for itself: " + ", ".join(data["unbound"]))
    return "\n\n".join(blocks) + "\n"


def _following(explanation: Explanation) -> str:
    names = ", ".join(explanation.follow or ())
    over = "the path may end" if names else "the path is over"
    parts = [f"may follow: {names}" if names else "", over if explanation.may_end else ""]
    return "; or ".join(part for part in parts if part) or "nothing may follow, and the path may not end"


def _expected(explanation: Explanation) -> str:
    items = explanation.expected
    with_lines = len(items) <= _WITH_LINES
    lines = ["expected there:" if explanation.reason else "what may come next:"]
    width = max(len(_words(item)) for item in items)
    # what %ignore admits is expected at the end of many rules at once: list it once
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


def _spot(spot: SourceSpan) -> str:
    return "\n".join(f"      {line}" for line in (str(spot), *spot.context.splitlines()))


def _bytes_and_tokens(data: dict) -> str:
    tokens = data["tokens"]
    lines = [f"next byte:   {_bytes(data['bytes'])}"]
    texts = (
        (token["id"], "(end of text)" if token["text"] is None else repr(token["text"])) for token in tokens["first"]
    )
    named = [f"{token_id} {text}" for token_id, text in texts]
    more = ["..."] if tokens["allowed"] > len(named) else []
    count = f"{tokens['allowed']:,} of {tokens['size']:,} ({tokens['tokenizer']})"
    lines.append(f"next token:  {count}" + (f": {', '.join(named + more)}" if named else ""))
    if data["forced"]:
        lines.append(f"forced text: {quoted(data['forced'])}")
    return "\n".join(lines)


def _bytes(values: list[int]) -> str:
    ascii_ = [byte for byte in values if byte < 0x80]
    parts = [repr(chr(ascii_[0]))] if len(ascii_) == 1 else []
    if len(ascii_) > 1:
        parts.append(class_text(charset((byte, byte) for byte in ascii_)))
    if len(values) > len(ascii_):
        parts.append(f"{len(values) - len(ascii_)} of those above 0x7f")
    return " and ".join(parts) or "none"
