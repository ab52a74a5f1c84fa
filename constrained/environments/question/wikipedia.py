"""Live Wikipedia, or any other MediaWiki, as an index.

Every request has a limit of time and of size; a failure is a `ToolError`, which `QuestionEnv`
reports to the agent. The API is MediaWiki's ``action=query`` with the extension TextExtracts, and
``action=opensearch``.
"""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

from constrained.environments.question.passages import Passage, cut_sentences, make_passage
from constrained.environments.text_search import MAX_CHARACTERS, cut_words
from constrained.errors import DataError, ToolError
from constrained.version import __version__

MAX_BYTES = 4 << 20
"""Bytes of an answer that are read; the longest pages of Wikipedia have about 1 MB of text."""
MAX_EXTRACTS = 20
"""Introductions that one request may ask for (TextExtracts' own limit)."""
_BUSY = (429, 503)  # answers after which a request is repeated, twice, within `timeout`
_NO_TITLE = frozenset("#<>[]{}|\n\t\x1f")


@dataclass(frozen=True)
class Wikipedia:
    """A wiki's own search and pages."""

    url: str = "https://en.wikipedia.org/w/api.php"  # of its api.php
    timeout: float = 10.0  # seconds that a request may take in all, including the look-up of the host's name
    contact: str = ""  # a page or an address for the User-Agent, as Wikimedia asks for

    def __post_init__(self):
        if urllib.parse.urlsplit(self.url).scheme not in ("http", "https"):
            raise DataError(f"{self.url!r} is no address of a wiki's api.php", hint="it begins with https://")

    def search(self, query: str, limit: int = 5) -> list[Passage]:
        """As `PassageIndex.search`: the introductions of what the wiki's search finds."""
        # Words only: the search has operators, some of them costly (insource:/…/).
        words = " ".join(cut_words(query[:MAX_CHARACTERS])[:50])
        if not words:
            return []
        return self._pages(
            generator="search", gsrsearch=words, gsrlimit=min(limit, MAX_EXTRACTS), exintro=1, exlimit=MAX_EXTRACTS
        )

    def page(self, title: str) -> Passage | None:
        """As `PassageIndex.page`; redirects are followed, and the whole page is read."""
        if not title.strip() or not _NO_TITLE.isdisjoint(title):
            return None
        found = self._pages(titles=title[:MAX_CHARACTERS], redirects=1)
        return found[0] if found else None

    def similar(self, title: str, limit: int = 5) -> list[str]:
        """As `PassageIndex.similar`: what the wiki suggests for it."""
        words = " ".join(cut_words(title[:MAX_CHARACTERS]))
        if not words:
            return []
        answer = self._ask(action="opensearch", search=words, limit=limit)
        if not isinstance(answer, list) or len(answer) < 2 or not isinstance(answer[1], list):
            raise ToolError(f"{self._host} gave an answer of another form than opensearch's")
        return [str(title) for title in answer[1]][:limit]

    def close(self) -> None:
        """Do nothing: no connection is kept open."""

    def _pages(self, **parameters) -> list[Passage]:
        answer = self._ask(action="query", prop="extracts", explaintext=1, exsectionformat="plain", **parameters)
        try:
            # Without a result there is no "query"; results come unordered.
            pages = sorted(answer.get("query", {"pages": []})["pages"], key=lambda page: page.get("index", 0))
            return [
                make_passage(self._host, page["title"], cut_sentences(page["extract"]))
                for page in pages
                if page.get("extract", "").strip()
            ]
        except (LookupError, TypeError, AttributeError) as error:
            raise ToolError(f"{self._host} gave an answer of another form than the API's: {error!r}") from error

    @property
    def _host(self) -> str:
        return urllib.parse.urlsplit(self.url).netloc

    def _ask(self, **parameters):
        """Return the API's answer; raise ToolError for any failure."""
        try:
            answer = json.loads(
                _within(self.timeout, self._fetch, {**parameters, "format": "json", "formatversion": 2})
            )
        except urllib.error.HTTPError as error:
            raise ToolError(f"{self._host} answered {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise ToolError(f"{self._host} did not answer within {self.timeout:g} s") from None
            raise ToolError(f"{self._host} can't be reached: {reason!r}") from error
        except (ValueError, RecursionError) as error:
            raise ToolError(f"{self._host} gave an answer that is not JSON: {error}") from error
        if isinstance(answer, dict) and "error" in answer:
            raise ToolError(f"{self._host} refused: {answer['error']}")
        return answer

    def _fetch(self, parameters: dict) -> bytes:
        address = f"{self.url}?{urllib.parse.urlencode(parameters, errors='replace')}"
        agent = f"constrained/{__version__} ({self.contact or 'research agent'}) Python-urllib"
        request = urllib.request.Request(address, headers={"User-Agent": agent, "Accept": "application/json"})
        for wait in (True, True, False):
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                    content = answer.read(MAX_BYTES + 1)
                break
            except urllib.error.HTTPError as error:
                if error.code not in _BUSY or not wait:
                    raise
                retry_after = error.headers.get("Retry-After", "")
                time.sleep(min(int(retry_after), self.timeout) if retry_after.isdecimal() else 1)
        if len(content) > MAX_BYTES:
            raise ToolError(f"{self._host} gave more than {MAX_BYTES:,} bytes")
        return content


def _within(seconds: float, function, *arguments):
    """Return or raise what the function does, or raise TimeoutError once the time is over.

    A socket's own timeout bounds neither the look-up of a host's name nor an answer that arrives
    byte by byte, so the function runs in a thread, which is abandoned after the timeout.
    """
    answers: queue.Queue = queue.Queue(1)

    def run() -> None:
        try:
            answers.put((function(*arguments), None))
        except Exception as error:  # raised in the calling thread
            answers.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        result, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return result
