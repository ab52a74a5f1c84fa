"""A truth value that comes from the device while the loop goes on."""

from __future__ import annotations

import torch


class AsyncFlag:
    """Looks at a condition on the device without waiting for it.

    A loop that asked "are all rows finished?" of the device at every token would stall until the token is computed.
    This one sends the answer off to pinned memory and looks whether an earlier one has landed: the loop learns of the
    end some tokens late, which costs those steps (finished rows absorb padding) and nothing else.

    Parameters
    ----------
    device : torch.device or str
        Where the conditions are computed. On a CPU the answer is there at once.
    """

    def __init__(self, device: torch.device | str):
        self._asynchronous = torch.device(device).type == "cuda"
        self._landing = torch.zeros((), dtype=torch.bool, pin_memory=self._asynchronous)
        self._event = torch.cuda.Event() if self._asynchronous else None
        self._under_way = False
        self._seen = False

    def look(self, condition: torch.Tensor) -> bool:
        """Whether a condition looked at before, or on a CPU this one, was true; once True, always True.

        Parameters
        ----------
        condition : torch.Tensor
            bool, one element, on the device; such as ``matcher.finished.all()``.
        """
        self._collect()
        if not self._under_way and not self._seen:
            self._landing.copy_(condition.reshape(()), non_blocking=True)
            if self._event is not None:
                self._event.record(torch.cuda.current_stream(condition.device))
            self._under_way = True
        self._collect()
        return self._seen

    def wait(self) -> bool:
        """The last condition sent off, waited for."""
        if self._event is not None and self._under_way:
            self._event.synchronize()
        self._collect()
        return self._seen

    def _collect(self) -> None:
        if self._under_way and (self._event is None or self._event.query()):
            self._under_way = False
            self._seen = self._seen or bool(self._landing)
