"""Quantised models run by llama.cpp in this project's loop, with jump-forward and batches.

Needs the package llama-cpp-python; written for and run with 0.3.36.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from constrained.automaton import Vocabulary
from constrained.decoding.forward import AnySequence, TokenSequence
from constrained.decoding.loop import NextLogits
from constrained.decoding.prefix_cache import PrefixCache, common_prefix
from constrained.decoding.ragged_forward import PromptSplitter
from constrained.decoding.vocabulary import llama_cpp_vocabulary
from constrained.errors import ModelError
from constrained.files import file_digest
from constrained.models.loaded import LoadedModel

CONTEXT = 8192
"""Most tokens held, of all rows together; less if the model's context is smaller."""

ROWS = 32
"""Texts read side by side, at most."""

CHUNK = 512
"""Tokens of one call of llama.cpp, at most."""

NEEDED = ("llama_model_load_from_file", "llama_init_from_model", "llama_get_memory", "llama_memory_seq_rm")
"""Functions that old releases of llama-cpp-python lack."""


class LlamaCppModel(LoadedModel):
    """A ``.gguf`` file in llama.cpp: a loaded model that can't be trained, moved or adapted.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
        With the file's own token ids.
    name : str, optional
        What plans call it; default: the path.
    threads : int, optional
        Default: as many as PyTorch uses.

    Raises
    ------
    ModelError
        llama-cpp-python isn't installed, or is too old, or llama.cpp can't read the file.
    """

    def __init__(self, path: str | Path, tokenizer: Any, *, name: str | None = None, threads: int | None = None):
        self.path = Path(path)
        engine = LlamaCpp(self.path, threads or torch.get_num_threads())
        super().__init__(engine, tokenizer, name or str(path), torch.device("cpu"))

    @cached_property
    def eos_token_ids(self) -> tuple[int, ...]:
        """The ids that llama.cpp treats as end of generation."""
        return tuple(self.vocabulary.eos_token_ids)

    @cached_property
    def logits_width(self) -> int:
        return self.vocabulary.size

    @cached_property
    def parameters(self) -> int:
        return self.model.library.llama_model_n_params(self.model.model)

    @cached_property
    def max_context(self) -> int | None:
        return self.model.context_tokens

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """llama.cpp's own pieces, which are bytes."""
        return llama_cpp_vocabulary(self.model.model)

    def weights_digest(self) -> str:
        """A digest of the file."""
        return file_digest(self.path)[:16]

    def side_by_side(self, tokens: int, most: int) -> int:
        """How many rows of `tokens` tokens fit in the context."""
        return max(1, min(most, ROWS, self.model.context_tokens // tokens))

    def reader(self, texts: Sequence[TokenSequence], cache: PrefixCache | None) -> NextLogits:
        return self.model.read(texts)


class LlamaCpp:
    """A model and one context of llama.cpp, in which each row is a sequence.

    The beginning that a row shares with the previous row in its place isn't read again.
    """

    def __init__(self, path: Path, threads: int):
        self.library = library = _library()
        _listen(library)
        library.llama_backend_init()
        options = library.llama_model_default_params()
        # With weights rearranged for AMX 0.3.36 crashes the process. Without AMX they make Q4_0 a quarter faster.
        if b"AMX_INT8 = 1" in library.llama_print_system_info():
            options.use_extra_bufts = False
        self.model = library.llama_model_load_from_file(str(path).encode(), options)
        if not self.model:
            raise ModelError(
                f"llama.cpp can't read {path}: {self._reason()}", "give a whole .gguf file of a causal model"
            )
        # One context for all rows: their tokens share its cells (`kv_unified`).
        self.context_tokens = min(CONTEXT, library.llama_model_n_ctx_train(self.model))
        options = library.llama_context_default_params()
        options.n_ctx, options.n_seq_max, options.kv_unified = self.context_tokens, ROWS, True
        options.n_batch = options.n_ubatch = CHUNK
        options.n_threads = options.n_threads_batch = threads
        self._context = library.llama_init_from_model(self.model, options)
        if not self._context:
            raise ModelError(f"llama.cpp makes no context for {path}: {self._reason()}", "see that it fits in memory")
        self._memory = library.llama_get_memory(self._context)
        self._width = library.llama_vocab_n_tokens(library.llama_model_get_vocab(self.model))
        self._batch = library.llama_batch_init(CHUNK, 0, 1)
        weakref.finalize(self, _free, library, self._batch, self._context, self.model)
        self.held: list[list[int]] = [[] for _ in range(ROWS)]  # tokens whose keys and values each sequence has

    def _reason(self) -> str:
        lines = [line.strip() for line in _TOLD if line.strip()]
        _TOLD.clear()
        return lines[-1] if lines else "no reason given"

    def read(self, texts: Sequence[TokenSequence]) -> NextLogits:
        """A reader of `texts`, row `i` in sequence `i`; the sequences of other rows are forgotten."""
        for sequence in range(len(texts), ROWS):
            self._keep(sequence, 0)
        return _BatchReader(self, texts)

    def _keep(self, sequence: int, count: int) -> None:
        if len(self.held[sequence]) > count:
            self.library.llama_memory_seq_rm(self._memory, sequence, count, -1)
            del self.held[sequence][count:]

    def run(self, rows: Sequence[tuple[int, list[int]]]) -> torch.Tensor:
        """The logits after each text, float32 ``[len(rows), width]``; `rows`: sequence -> its whole text."""
        result: dict[int, np.ndarray] = {}
        self._read([(row, self.unread(*row)) for row in rows], result)
        return torch.from_numpy(np.stack([result[sequence] for sequence, _ in rows]))

    def unread(self, sequence: int, ids: list[int]) -> int:
        """The number of tokens of a text that its sequence doesn't hold, at least 1: the last one gives the logits."""
        return len(ids) - min(common_prefix(self.held[sequence], ids), len(ids) - 1)

    def read_on(self, row: tuple[int, list[int]], tokens: int) -> None:
        """Read the next `tokens` tokens of a long text, at most up to the one before its last."""
        sequence, ids = row
        self._read([((sequence, ids), min(tokens, self.unread(*row) - 1))], {})

    def _read(self, rows: Sequence[tuple[tuple[int, list[int]], int]], found: dict[int, np.ndarray]) -> None:
        """Read tokens of each text; the logits after its last one, if it is among them, go to `found`."""
        waiting = []
        for (sequence, ids), tokens in rows:
            begin = len(ids) - self.unread(sequence, ids)
            self._keep(sequence, begin)
            waiting += [(sequence, at, ids[at], at == len(ids) - 1) for at in range(begin, begin + tokens)]
        for begin in range(0, len(waiting), CHUNK):
            self._decode(waiting[begin : begin + CHUNK], found)

    def _decode(self, tokens: Sequence[tuple[int, int, int, bool]], logits_of: dict[int, np.ndarray]) -> None:
        batch = self._batch
        batch.n_tokens = len(tokens)
        for i, (sequence, at, token, last) in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.logits[i] = token, at, last
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
        # After an error nobody knows which tokens were read, so all is forgotten.
        if code := self.library.llama_decode(self._context, batch):
            self.library.llama_memory_clear(self._memory, True)
            self.held = [[] for _ in range(ROWS)]
            raise ModelError(
                f"llama.cpp stopped with code {code}: {self._reason()}",
                "shorten the prompt, or write fewer texts at once",
            )
        for i, (sequence, _, token, last) in enumerate(tokens):
            self.held[sequence].append(token)
            if last:
                logits = self.library.llama_get_logits_ith(self._context, i)
                logits_of[sequence] = np.ctypeslib.as_array(logits, (self._width,)).copy()


def _library() -> Any:
    """The module llama_cpp."""
    try:
        import llama_cpp
    except ImportError:
        raise ModelError("llama.cpp isn't installed", "pip install llama-cpp-python") from None
    except Exception as error:  # its shared library is missing, or doesn't fit this machine
        raise ModelError(f"llama-cpp-python can't be imported: {error}", "install it again") from None
    lacking = [name for name in NEEDED if not hasattr(llama_cpp, name)]
    if lacking or not hasattr(llama_cpp.llama_context_params, "kv_unified"):
        version = getattr(llama_cpp, "__version__", "")
        what = f"llama-cpp-python {version} is too old: it has no {(*lacking, 'kv_unified')[0]}"
        raise ModelError(what, "pip install --upgrade llama-cpp-python")
    return llama_cpp


_TOLD: deque[str] = deque(maxlen=100)
"""What llama.cpp told last, for errors: it prints the reason of a failure and returns none."""


@cache
def _listen(library: Any) -> Any:
    """Keep llama.cpp's messages instead of printing them. Its one callback must live as long as the process."""
    callback = library.llama_log_callback(lambda level, text, data: _TOLD.append(text.decode(errors="replace")))
    library.llama_log_set(callback, ctypes.c_void_p(0))
    return callback


def _free(library: Any, batch: Any, context: Any, model: Any) -> None:
    library.llama_batch_free(batch)
    library.llama_free(context)
    library.llama_model_free(model)


class _BatchReader:
    """Reads the texts of a batch; see `constrained.decoding.loop.NextLogits`."""

    asynchronous = False
    call_seconds: float | None = None

    def __init__(self, engine: LlamaCpp, texts: Sequence[TokenSequence]):
        self.engine, self.sequences = engine, {id(text): row for row, text in enumerate(texts)}
        self._pieces = PromptSplitter()

    def next_logits(self, texts: Sequence[AnySequence]) -> tuple[list[AnySequence], torch.Tensor, np.ndarray | None]:
        kept = {id(text): self.sequences[id(text)] for text in texts if id(text) in self.sequences}
        free = (sequence for sequence in range(ROWS) if sequence not in kept.values())
        self.sequences = {id(text): kept[id(text)] if id(text) in kept else next(free) for text in texts}
        rows = [(self.sequences[id(text)], text.ids) for text in texts]
        asked = list(range(len(rows)))
        if self.call_seconds is not None:
            unread = [self.engine.unread(*row) for row in rows]
            width = self._pieces.limit(max(unread), self.call_seconds)
            asked = [i for i, n in enumerate(unread) if n <= width]
            if cut := [row for row, n in zip(rows, unread) if n > width]:
                self.engine.read_on(cut[0], width)
        if not asked:
            return [], torch.empty(0), None
        return [texts[i] for i in asked], self.engine.run([rows[i] for i in asked]), None
