"""Write texts with a loaded model: `generate` one, `generate_batch` many side by side."""

from __future__ import annotations

import time
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch

from constrained.arguments import NUMBER, SEVERAL, TEXT, WHOLE, check, checked
from constrained.automaton import CompiledGrammar, Grammar, Vocabulary, compile_grammar
from constrained.decoding.forward import TokenSequence
from constrained.decoding.loop import FreeText, GuidedText, NextLogits, Text, decode
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.request import Generation, PrunedMass, Request, Token
from constrained.decoding.sampling import Sampler, choose_together
from constrained.errors import ConstrainedError, ModelError

MAX_ROWS = 32
"""Texts decoded side by side."""

SMALL_MODEL = 30_000_000
"""Weights up to which a model on the CPU runs with one thread."""


class LanguageModel(Protocol):
    """The attributes of a model that generation needs, as in `constrained.models.LoadedModel`."""

    model: Any
    tokenizer: Any
    name: str
    device: torch.device

    @property
    def splits(self) -> Any: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def eos_token_ids(self) -> tuple[int, ...]: ...
    @property
    def logits_width(self) -> int: ...
    @property
    def parameters(self) -> int: ...
    @property
    def max_context(self) -> int | None: ...
    def encode(self, text: str) -> list[int]: ...
    def side_by_side(self, tokens: int, most: int) -> int: ...
    def reader(self, texts: Sequence[TokenSequence], cache: PrefixCache | None) -> NextLogits: ...


@checked(max_new_tokens=WHOLE, temperature=NUMBER, top_k=WHOLE, top_p=NUMBER, begun=TEXT)
def generate(
    loaded: LanguageModel,
    prompt: str | Sequence[int],
    grammar: Grammar | CompiledGrammar | None = None,
    *,
    max_new_tokens: int = 256,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    stop: str | Sequence[str] | None = None,
    cache: PrefixCache | None = None,
    begun: str = "",
) -> Generation:
    """Continue a prompt; with a grammar, by a text of the grammar.

    Parameters
    ----------
    loaded : LoadedModel
    prompt, grammar, max_new_tokens, stop, begun
        See `Request`.
    temperature, top_k, top_p, generator
        See `Sampler`; greedy by default. Equal seeds give equal texts.
    cache : PrefixCache, optional
        Keys and values of the last call, to reuse what the prompts share.

    Raises
    ------
    ConstrainedError
        If a number is out of range, the prompt doesn't fit in the model's context, or the shortest text of the
        grammar doesn't fit in the tokens allowed.
    """
    request = Request(prompt, grammar, max_new_tokens, stop, begun, generator=generator)
    [generation] = generate_batch(loaded, [request], temperature=temperature, top_k=top_k, top_p=top_p, cache=cache)
    return generation


@checked(requests=SEVERAL, temperature=NUMBER, top_k=WHOLE, top_p=NUMBER, rows=WHOLE)
def generate_batch(
    loaded: LanguageModel,
    requests: Sequence[Request],
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    rows: int = MAX_ROWS,
    cache: PrefixCache | None = None,
) -> list[Generation]:
    """Write a text for each request, side by side if the model supports it.

    Parameters
    ----------
    loaded : LoadedModel
    requests : sequence of Request
    temperature, top_k, top_p
        As for `generate`, for all texts.
    rows : int
        Most texts at a time.
    cache : PrefixCache, optional
        Keys and values of the last text that was decoded by itself. Rows decoded side by side don't use it: the steps
        of an agent share too little of their prompts for it to pay.

    Returns
    -------
    list of Generation
        In the order of `requests`. Each equals what `generate` makes of it alone, up to rounding: a batch multiplies
        its matrices in another order, so that the last digits of probabilities differ.

    Raises
    ------
    ConstrainedError
        As `generate`, before anything is written; or two requests share a generator.
    """
    if rows < 1:
        raise ConstrainedError(f"rows is {rows}", "use 1 or more")
    generators = [request.generator for request in requests if request.generator is not None]
    if len(set(map(id, generators))) < len(generators):
        raise ConstrainedError(
            "requests of a batch share a generator: what is drawn would depend on their order",
            "give each its own: torch.Generator().manual_seed(…)",
        )
    began = time.perf_counter()
    writings = [Writing(loaded, request, temperature, top_k, top_p) for request in requests]
    side_by_side = loaded.side_by_side(max((writing.longest for writing in writings), default=1), rows)
    cache = PrefixCache() if cache is None else cache
    for first in range(0, len(writings), side_by_side):
        batch = writings[first : first + side_by_side]
        _write(
            loaded,
            {writing.text: writing for writing in batch},
            loaded.reader([writing.text for writing in batch], cache),
        )
    seconds = (time.perf_counter() - began) / max(1, len(writings))
    return [writing.generation(seconds) for writing in writings]


def generate_joining(
    loaded: LanguageModel,
    arrive: Callable[[int], Iterable[Writing]],
    ended: Callable[[Writing], object],
    rows: int = MAX_ROWS,
    wait: Callable[[Sequence[Any], bool], Sequence[Any]] | None = None,
    call_seconds: float | None = None,
) -> None:
    """Write texts side by side until none is left; others can join at every token.

    Parameters
    ----------
    arrive : callable
        Called with the number of free rows; returns the texts to add.
    ended : callable
        Called with each text when it ends. If the text failed, its ``text.error`` is the exception; others go on.
    rows : int
        Most texts at a time.
    wait : callable, optional
        Waits for texts that are worked out elsewhere (see `decode`).
    call_seconds : float, optional
        Time that a call of the model should take: a long prompt is read in pieces while other texts are written.
    """
    writing: dict[Text, Writing] = {}
    held: deque[Writing] = deque()

    def join(waiting: Sequence[Text]) -> list[Text]:
        # First report what has ended: that frees rows. Then ask for as many texts as there are free rows, and let in
        # those that the model can hold beside the others, the first come first.
        for text in writing.keys() - set(waiting):
            ended(writing.pop(text))
        held.extend(arrive(rows - len(writing) - len(held)))
        joined = []
        while held:
            longest = max(new.longest for new in (held[0], *writing.values()))
            if len(writing) >= loaded.side_by_side(longest, rows):
                break
            new = held.popleft()
            writing[new.text] = new
            joined.append(new.text)
        return joined

    if first := join([]):
        reader = loaded.reader(first, None)
        reader.call_seconds = call_seconds
        _write(loaded, writing, reader, join, wait)


class Writing:
    """A request whose text is being written; `text`: its beginning, if it is not made here.

    Raises ConstrainedError: as `generate`.
    """

    def __init__(
        self,
        loaded: LanguageModel,
        request: Request,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        text: Text | None = None,
    ):
        self.loaded, self.request = loaded, request
        self.text = start_text(loaded, request) if text is None else text
        self.sampler = Sampler(temperature, top_k, top_p, request.generator, request.show_forbidden)
        self.stream = _Stream(request.on_text, request.stops) if request.on_text else None

    @property
    def longest(self) -> int:
        """Tokens of the prompt and of what may be written."""
        return self.text.prompt_tokens + self.request.max_new_tokens

    def generation(self, seconds: float = 0.0) -> Generation:
        """The finished text."""
        text = self.text
        masses = [token.pruned_mass for token in text.tokens if not token.forced]
        if text.end is not None:
            masses.append(text.end.pruned_mass)
        measured = masses if self.request.grammar is not None else []
        return Generation(
            text=text.data[text.start : text.stop_at].decode("utf-8", "replace"),
            role=self.request.role,
            model=self.loaded.name,
            prompt_tokens=text.prompt_tokens,
            completion_tokens=len(text.tokens),
            forced_tokens=sum(token.forced for token in text.tokens),
            forward_passes=len(masses),
            pruned_mass=PrunedMass.of(measured),
            seconds=seconds,
            complete=text.complete,
            tokens=tuple(text.tokens),
            end=text.end,
        )


def _write(
    loaded: LanguageModel,
    known: Mapping[Text, Writing],
    forward: NextLogits,
    join: Callable[[Sequence[Text]], Sequence[Text]] | None = None,
    wait: Callable[[Sequence[Any], bool], Sequence[Any]] | None = None,
) -> None:
    """Write texts to their ends; those that `join` returns are added to `known` (see `decode`)."""

    def choose(asked: Sequence[Text], logits: torch.Tensor, _: np.ndarray | None) -> list[Token]:
        chosen = [known[text].sampler for text in asked]
        if logits.device.type != "cpu" and len(asked) > 1 and all(sampler.plain for sampler in chosen):
            return choose_together(chosen, logits, [text.mask for text in asked])
        return [sampler.choose(row, text.mask) for sampler, row, text in zip(chosen, logits, asked)]

    def stream(grown: Sequence[Text]) -> None:
        for text in grown:
            if (streamed := known[text].stream) is not None:
                streamed.send(text)

    with _threads(loaded), torch.no_grad():
        decode(list(known), forward, choose, stream, join, wait)


class _Stream:
    """Sends a growing text: whole characters only, and none that may be part of a stop string."""

    def __init__(self, send: Callable[[str], bool | None], stops: Sequence[str]):
        self._send, self._held_back = send, max((len(stop.encode()) - 1 for stop in stops), default=0)
        self._decoder, self._sent = getincrementaldecoder("utf-8")("replace"), 0

    def send(self, text: Text) -> None:
        written = bytes(text.data[text.start : text.stop_at])
        # The end of a text that goes on may be the beginning of a stop string.
        end = len(written) if text.done else max(self._sent, len(written) - self._held_back)
        piece = self._decoder.decode(written[self._sent : end], final=text.done)
        self._sent = end
        if piece and self._send(piece) is False and not text.done:
            text.done, text.complete = True, False


def start_text(loaded: LanguageModel, request: Request) -> FreeText | GuidedText:
    """The text of a request before its first token. Raises ConstrainedError as `generate` does."""
    if not hasattr(loaded, "logits_width"):
        raise ModelError(f"a loaded model is wanted here, not {type(loaded).__name__}", "constrained.models.load(…)")
    grammar, stops = request.grammar, request.stops
    if request.stop is not None and (grammar is not None or not all(stops)):
        raise ConstrainedError("stop is for text without a grammar, and not empty", "let the grammar end the text")
    if isinstance(request.prompt, str):
        _check_length(loaded, request.prompt)
    ids = prompt_ids(loaded, request.prompt)
    limit = token_limit(loaded, len(ids), request.max_new_tokens)
    if grammar is None:
        return FreeText(loaded.vocabulary, ids, limit, [stop.encode() for stop in stops])
    matcher = _compiled(loaded, grammar).matcher(request.begun)
    matcher.set_budget(limit)
    return GuidedText(matcher, ids, loaded.splits)


@contextmanager
def _threads(loaded: LanguageModel) -> Iterator[None]:
    """Run a small model on the CPU with one thread.

    Its matrices are too small to gain from more, and on a machine where other work holds a core every operation
    waits for the thread that isn't scheduled: 260,000 weights wrote 60 tokens a second with two threads beside two
    busy processes, 1,140 with one (torch 2.13, two cores); on an idle machine 1,170 and 1,140.
    """
    threads = torch.get_num_threads()
    if loaded.device.type != "cpu" or threads == 1 or loaded.parameters > SMALL_MODEL:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def prompt_ids(loaded: LanguageModel, prompt: str | Sequence[int]) -> list[int]:
    """The token ids of the prompt: at least one, all within the model's vocabulary."""
    if isinstance(prompt, str):
        ids = loaded.encode(prompt)
        # Some tokenizers close every text with an end-of-text token; nothing would follow it.
        closed = ids and ids[-1] in loaded.eos_token_ids
        if closed and not prompt.endswith(loaded.tokenizer.convert_ids_to_tokens(ids[-1])):
            ids.pop()
    else:
        check("the prompt", prompt, SEVERAL)
        ids = list(prompt)
        for token in ids:
            check("a token of the prompt", token, WHOLE)
        ids = [int(token) for token in ids]
    if not ids:  # a model needs at least one token to read
        first = getattr(loaded.tokenizer, "bos_token_id", None)
        ids = [loaded.eos_token_ids[0] if first is None else first]
    unknown = [token for token in ids if not 0 <= token < loaded.logits_width]
    if unknown:
        raise ModelError(
            f"the prompt holds token {unknown[0]}, but {loaded.name} knows only 0 to {loaded.logits_width - 1}",
            "use the tokenizer that belongs to the model",
        )
    return ids


def _check_length(loaded: LanguageModel, prompt: str) -> None:
    """Refuse a prompt that is too long however it is tokenized, as that takes seconds for megabytes."""
    longest, context = loaded.vocabulary.longest, loaded.max_context
    if context is not None and len(prompt) > context * longest:
        raise ModelError(
            f"the prompt of {len(prompt):,} characters fills the context of {loaded.name} ({context:,} tokens of at "
            f"most {longest} characters)",
            "shorten the prompt, or use a model with a longer context",
        )


def token_limit(loaded: LanguageModel, prompt_tokens: int, max_new_tokens: int) -> int:
    """The most tokens that may be generated: the request's limit, or what the model's context leaves."""
    if max_new_tokens < 1:
        raise ConstrainedError(f"max_new_tokens is {max_new_tokens}", "use 1 or more")
    if loaded.max_context is None:
        return max_new_tokens
    left = loaded.max_context - prompt_tokens
    if left < 1:
        raise ModelError(
            f"the prompt of {prompt_tokens} tokens fills the context of {loaded.name} ({loaded.max_context} tokens)",
            "shorten the prompt, or use a model with a longer context",
        )
    return min(max_new_tokens, left)


def _compiled(loaded: LanguageModel, grammar: Grammar | CompiledGrammar) -> CompiledGrammar:
    if not isinstance(grammar, CompiledGrammar):
        return compile_grammar(grammar, loaded.vocabulary)
    ours, theirs = loaded.vocabulary, grammar.vocabulary
    if theirs is not ours and theirs.fingerprint != ours.fingerprint:
        raise ModelError(
            f"the grammar was compiled for another vocabulary than that of {loaded.name}",
            "compile_grammar(grammar, loaded.vocabulary)",
        )
    return grammar
