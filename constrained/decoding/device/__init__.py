"""Masks, choice and state on the device, so that the generation loop never waits for the host.

`DeviceTables.build` visits a grammar's automaton ahead of time and lays it out as tensors; a `DeviceMatcher` moves a
batch of texts through them, with one kernel a token. On a CPU the same runs in plain torch, with identical tokens.
"""

from constrained.decoding.device.loop import AsyncFlag, capture, release
from constrained.decoding.device.matcher import DeviceMatcher
from constrained.decoding.device.tables import DeviceTables

__all__ = ["AsyncFlag", "DeviceMatcher", "DeviceTables", "capture", "release"]
