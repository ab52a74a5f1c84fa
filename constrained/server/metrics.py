"""Counts and times of the proxy, in Prometheus's form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from constrained.errors import install_hint
from constrained.server.chat_request import RequestError

SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 300, float("inf"))
"""Upper ends of the classes of times: models take their time."""


class Metrics:
    """The figures that Prometheus reads; nothing is counted if its client library isn't installed.

    Parameters
    ----------
    running : callable
        How many requests are being answered.
    """

    def __init__(self, running: Callable[[], int]) -> None:
        try:
            import prometheus_client as client
        except ImportError:
            self._client: Any = None
            return
        self._client, self._registry = client, client.CollectorRegistry()
        named: dict[str, Any] = {"registry": self._registry}
        self._requests = client.Counter("constrained_requests", "Requests answered.", ["outcome"], **named)
        self._violations = client.Counter("constrained_violations", "Answers refused.", ["kind"], **named)
        self._past = client.Counter("constrained_past_violations", "Violations in conversations' pasts.", **named)
        self._retries = client.Counter("constrained_retries", "Answers sent back to the model.", **named)
        named |= {"buckets": SECONDS}
        self._seconds = client.Histogram("constrained_seconds", "From a request to the end of its answer.", **named)
        self._upstream = client.Histogram("constrained_upstream_seconds", "Of these, at the upstream.", **named)
        now = client.Gauge("constrained_running", "Requests that are being answered.", registry=self._registry)
        now.set_function(running)

    def answered(self, note: dict[str, Any]) -> None:
        """Count one request, as it is logged."""
        if self._client is None:
            return
        violations = note["violations"]
        outcome = "error" if "error" in note else "refused" if len(violations) == note["attempts"] > 0 else "ok"
        self._requests.labels(outcome).inc()
        for one in violations:
            self._violations.labels(one["kind"]).inc()
        self._past.inc(note.get("past_violations", 0))
        self._retries.inc(max(0, note["attempts"] - 1))
        self._seconds.observe(note["seconds"])
        if "upstream_seconds" in note:
            self._upstream.observe(note["upstream_seconds"])

    def text(self) -> tuple[bytes, str]:
        """All figures, and their type. Raises RequestError: the client library isn't installed."""
        if self._client is None:
            raise RequestError("there are no metrics without prometheus-client", install_hint("proxy"), status=501)
        return self._client.generate_latest(self._registry), self._client.CONTENT_TYPE_LATEST
