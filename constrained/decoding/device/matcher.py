"""A batch of texts on the device, where tokens are masked, chosen and read without the host."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch

from constrained.decoding.device import kernel_torch
from constrained.decoding.device.explore import FINISHED, NEVER
from constrained.decoding.device.tables import DeviceTables
from constrained.decoding.sampling import Sampler
from constrained.errors import ConstrainedError, ModelError, VocabularyError


class DeviceMatcher:
    """`Matcher` for many rows, each in a grammar of `tables`.

    The masks are the same: a row may write exactly the tokens that leave a way to finish. `step`, `advance`, `mask`,
    `gather` and `finished` have fixed shapes and never wait for the device: a loop of them runs ahead of it, and can be
    captured in a CUDA graph. `state`, `left` and `pruned_mass` are written in place and keep their addresses.

    Parameters
    ----------
    tables : DeviceTables
    rows : int or sequence of int
        How many rows, all of grammar 0; or the index of each row's grammar in `tables`.
    budget : int or sequence of int, optional
        See `set_budget`.
    pad_token_id : int, optional
        What a finished row yields; default: the first end-of-text token.
    backend : {"triton", "torch"}, optional
        Default: Triton on CUDA where it is installed, else torch. Both give identical tokens.
    generator : torch.Generator, optional
        Draws the key of the noise that samples tokens; default: torch's global one. Equal keys give equal tokens with
        every backend.

    Attributes
    ----------
    state : torch.Tensor of int32, shape [rows]
    left : torch.Tensor of int32, shape [rows]
        Tokens that each row may still write; huge without a budget.
    draws : torch.Tensor of int32, shape [rows]
        Tokens that each row has sampled.
    pruned_mass : torch.Tensor of float32, shape [rows], or None
        Probability of the tokens that weren't allowed in the last `step` that was asked to measure it.

    Raises
    ------
    ConstrainedError
        No row, no such grammar or backend.
    """

    def __init__(
        self,
        tables: DeviceTables,
        rows: int | Sequence[int],
        *,
        budget: int | Sequence[int] | None = None,
        pad_token_id: int | None = None,
        backend: str | None = None,
        generator: torch.Generator | None = None,
    ):
        grammars = [0] * rows if isinstance(rows, int) else [int(g) for g in rows]
        bad = [g for g in grammars if not 0 <= g < len(tables.start)]
        if bad or not grammars:
            raise ConstrainedError(
                f"a row asks for grammar {bad[0]}" if bad else "a matcher needs at least one row",
                f"the tables hold grammars 0 to {len(tables.start) - 1}",
            )
        self.tables = tables
        self.pad = tables.eos_token_ids[0] if pad_token_id is None else int(pad_token_id)
        self.backend = _backend(tables.device, backend)
        self.state = torch.zeros(len(grammars), dtype=torch.int32, device=tables.device)
        self.left, self.draws = torch.zeros_like(self.state), torch.zeros_like(self.state)
        self.pruned_mass: torch.Tensor | None = None
        self._key: torch.Tensor | None = None
        self.restart(grammars, budget=budget, generator=generator)

    def __len__(self) -> int:
        return len(self.state)

    @property
    def finished(self) -> torch.Tensor:
        """Rows that have read an end-of-text token, bool ``[rows]`` on the device."""
        return self.state == FINISHED

    @property
    def complete(self) -> torch.Tensor:
        """Rows whose text so far is in the language, bool ``[rows]`` on the device."""
        return self.tables.fewest[self.state] <= 0

    def restart(
        self,
        grammars: Sequence[int],
        *,
        budget: int | Sequence[int] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        """Begin new texts in the same number of rows; see `DeviceMatcher`."""
        self.state.copy_(self.tables.start[torch.tensor(grammars, device=self.state.device)])
        self.draws.zero_()
        self._generator = generator
        if self._key is not None:
            self._key.copy_(self._draw_key())
        self.set_budget(budget)

    def set_budget(self, tokens: int | Sequence[int] | None) -> None:
        """From here on allow only tokens that leave a way to finish within `tokens`, the end-of-text token not counted.

        It waits for the device: call it before the loop, not in it. The fewest tokens to the end are exact here;
        `Matcher.set_budget` on the host may use a bound, and rule out more near the end.

        Raises
        ------
        VocabularyError
            Not even a row's shortest way to finish fits.
        """
        if tokens is None:
            self.left.fill_(NEVER)
            return
        each = [tokens] * len(self) if isinstance(tokens, int) else tokens
        budget = torch.tensor(each, dtype=self.left.dtype, device=self.left.device)
        if budget.shape != self.left.shape:
            raise ConstrainedError(f"{len(budget)} budgets for {len(self)} rows", "give one number, or one a row")
        need = self.tables.fewest[self.state]
        short = torch.nonzero(need > budget).flatten().tolist()
        if short:
            row = short[0]
            raise VocabularyError(
                f"a budget of {budget[row]} tokens is too small for row {row}: "
                f"the shortest way to finish takes {need[row]}",
                hint="raise max_new_tokens",
            )
        self.left.copy_(budget)

    def step(
        self,
        logits: torch.Tensor,
        *,
        temperature: float | torch.Tensor = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        pruned_mass: bool = False,
    ) -> torch.Tensor:
        """Choose a token in each row, and advance.

        Parameters
        ----------
        logits : torch.Tensor
            Any float ``[rows, width]`` on the tables' device; columns beyond the vocabulary are never chosen. NaN
            counts as minus infinity; if all allowed logits are that, the lowest token is chosen.
        temperature : float or torch.Tensor
            0: the likeliest token, the lowest of equals; a float32 tensor ``[rows]`` gives each row its own, and may be
            changed between replays of a captured graph.
        top_k, top_p : int, float, optional
            As for `Sampler`; these sort the logits, in torch.
        pruned_mass : bool
            Measure :attr:`pruned_mass`; for narrow rows it costs a pass over all logits that is otherwise not needed.

        Returns
        -------
        torch.Tensor
            int64 ``[rows]``; the padding token in rows that were finished before.

        Raises
        ------
        ConstrainedError
            A shape or number doesn't fit.
        """
        self._check(logits, temperature, top_k, top_p)
        greedy = not isinstance(temperature, torch.Tensor) and temperature == 0
        if greedy:
            top_k = top_p = None
        elif self._key is None:
            self._key = self._draw_key()
        if pruned_mass and self.pruned_mass is None:
            self.pruned_mass = torch.zeros(len(self), device=logits.device)
        if not isinstance(temperature, torch.Tensor):
            temperature = torch.full((len(self),), temperature, dtype=torch.float32, device=logits.device)
        return self.backend.step(
            self.tables,
            self.state,
            self.left,
            logits if logits.stride(1) == 1 else logits.contiguous(),
            temperature=temperature,
            key=None if greedy else self._key,
            draws=self.draws,
            pad=self.pad,
            top_k=top_k,
            top_p=top_p,
            pruned=self.pruned_mass if pruned_mass else None,
        )

    def forced_length(self) -> torch.Tensor:
        """Length of each row's forced run, int32 ``[rows]``; 0 where the model has a choice, or the budget rules the
        run out.
        """
        tables, state = self.tables, self.state
        length = tables.run_length[state]
        end = tables.run_after[state, (length - 1).clamp(min=0)]
        return torch.where(tables.fewest[end] <= self.left - length, length, 0)

    def read_forced(self, most: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Read the forced runs, up to `most` tokens (int, ``[rows]``) of each.

        Returns
        -------
        ids, count : torch.Tensor
            int32 ``[rows, RUN]``, of which the first `count` (``[rows]``) were read.
        """
        ids = self.tables.run_ids[self.state]
        count = torch.minimum(self.forced_length(), most)
        after = self.tables.run_after[self.state, (count - 1).clamp(min=0)]
        self.state.copy_(torch.where(count > 0, after, self.state))
        self.left.sub_(count)
        return ids, count

    def advance(self, tokens: torch.Tensor) -> torch.Tensor:
        """Read tokens that were chosen elsewhere.

        Parameters
        ----------
        tokens : torch.Tensor
            int64 ``[rows]``; a negative one leaves its row as it is.

        Returns
        -------
        torch.Tensor
            bool ``[rows]``; False, and nothing changed, where the token is not allowed.
        """
        after = kernel_torch.after(self.tables, self.state, tokens, self.left)
        good = after >= 0
        self.state.copy_(torch.where(good, after, self.state))
        self.left.sub_((good & ~self.finished).int())  # the end-of-text token is not counted
        return good | (tokens < 0)

    def mask(self) -> torch.Tensor:
        """Tokens allowed next, packed int32 ``[rows, words]``: bit ``i % 32`` of word ``i // 32`` is token ``i``."""
        return kernel_torch.mask(self.tables, self.state, self.left)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Set the logits of tokens that aren't allowed to minus infinity, in place."""
        self._check(logits)
        return self.backend.apply(logits, self.mask())

    def copy(self) -> DeviceMatcher:
        """An independent copy."""
        return self._with(self.state.clone(), self.left.clone())

    def gather(self, indices: torch.Tensor) -> DeviceMatcher:
        """A matcher whose rows are copies of these rows (beam search's fork); `indices` int64, on the device."""
        return self._with(self.state[indices], self.left[indices])

    def _with(self, state: torch.Tensor, left: torch.Tensor) -> DeviceMatcher:
        other = copy.copy(self)
        other.state, other.left, other.pruned_mass = state, left, None
        other.draws, other._key = torch.zeros_like(state), None
        return other

    def _draw_key(self) -> torch.Tensor:
        device = self.state.device if self._generator is None else self._generator.device
        return torch.randint(2**63 - 1, (1,), device=device, generator=self._generator).to(self.state.device)

    def _check(
        self,
        logits: torch.Tensor,
        temperature: float | torch.Tensor = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
    ) -> None:
        rows, size = len(self), self.tables.size
        if logits.dim() != 2 or logits.shape[0] != rows or logits.shape[1] < size:
            raise ModelError(
                f"logits of shape {tuple(logits.shape)}; needs [{rows}, {size} or more]",
                "compile the grammar for the vocabulary of this model's tokenizer",
            )
        if logits.device != self.state.device:
            raise ModelError(f"logits on {logits.device}, tables on {self.state.device}", "tables.to(logits.device)")
        if isinstance(temperature, torch.Tensor):
            if temperature.shape != (rows,) or temperature.dtype != torch.float32:
                raise ConstrainedError(f"temperature of shape {tuple(temperature.shape)}", f"needs float32 [{rows}]")
            temperature = 0.0
        Sampler(temperature, top_k, top_p)  # checks their ranges


def _backend(device: torch.device, name: str | None) -> Any:
    """The module whose kernels run on `device`."""
    if name not in (None, "torch", "triton"):
        raise ConstrainedError(f"no backend {name!r}", "use 'triton' or 'torch'")
    if name == "torch" or (name is None and device.type != "cuda"):
        return kernel_torch
    try:
        from constrained.decoding.device import kernel_triton
    except ImportError as error:
        if name is None:
            return kernel_torch
        raise ConstrainedError(
            f"triton can't be imported ({error})", "pip install triton, or backend='torch'"
        ) from None
    return kernel_triton
