"""Live Wikipedia, or any other MediaWiki, as an index.

Every request is limited in time and size; failures are `ToolError`s, which `QuestionEnv` reports to the agent. The API
is MediaWiki's ``action=query`` with the extension TextExtracts, and ``action=opensearch``.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import Future
from dataclasses import dataclass

from constrained.environments.question.passages import Passage, cut_sentences, make_passage
from constrained.environments.text_search import MAX_CHARACTERS, cut_words
from constrained.errors import DataError, ToolError
from constrained.version import __version__

MAX_BYTES = 4 << 20
"""Most bytes of an answer; the longest pages of Wikipedia have about 1 MB of text."""
MAX_EXTRACTS = 20
"""Most introductions in one request (TextExtracts' own limit)."""
_BUSY = (429, 503)  # status codes after which a request is repeated, up to twice and within `timeout`
_NO_TITLE = frozenset("#<>[]{}|\n\t\x1f")


@dataclass(frozen=True)
class Wikipedia:
    """A wiki's own search and pages."""

    url: str = "https://en.wikipedia.org/w/api.php"  # the wiki's api.php
    timeout: float = 10.0  # seconds for a whole request, including the look-up of the host's name
    contact: str = ""  # a page or address for the User-Agent, which Wikimedia asks for

    def __post_init__(self):
        if urllib.parse.urlsplit(self.url).scheme not in ("http", "https"):
            raise DataError(f"{self.url!r} is not the address of a wiki's api.php", hint="it begins with https://")

    def search(self, query: str, limit: int = 5) -> list[Passage]:
        """As `PassageIndex.search`: the introductions of the pages that the wiki's search finds."""
        # Words only, because the search has operators, some of them costly (insource:/…/).
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
        pages = self._pages(titles=title[:MAX_CHARACTERS], redirects=1)
        return pages[0] if pages else None

    def similar(self, title: str, limit: int = 5) -> list[str]:
        """As `PassageIndex.similar`: the titles that the wiki suggests."""
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
        """The API's answer; raises ToolError for any failure."""
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
    """Call a function, and raise TimeoutError if it takes longer.

    A socket's own timeout limits neither the look-up of a host's name nor an answer that arrives byte by byte, so the
    function runs in a thread, which is abandoned after the timeout.
    """
    answer: Future = Future()

    def run() -> None:
        try:
            answer.set_result(function(*arguments))
        except Exception as error:  # raised in the calling thread
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()  # an executor's thread would delay the end of the process
    return answer.result(seconds)
