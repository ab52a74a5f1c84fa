"""Build an HTML page that contains its styles, scripts and data."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

STATIC = files("constrained.pages") / "static"

_IMPORT = re.compile(r'^import [^;]* from "\.{1,2}/[^"]*";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const|let|function|async|class)", re.MULTILINE)

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
{body}
<script type="application/json" id="data">{data}</script>
{scripts}
</body>
</html>
"""


def page(
    title: str,
    body: str,
    *,
    styles: Iterable[str] = (),
    scripts: Iterable[str] = (),
    modules: Sequence[str] = (),
    data: Any = None,
) -> str:
    """A complete page, whose policy lets the browser run these scripts and no others, whatever `data` contains.

    Parameters
    ----------
    title : str
        Plain text.
    body : str
        HTML; text from elsewhere in it must already be escaped.
    styles, scripts : iterable of str
        Names of files under ``static/``, in order. Every page has ``base.css`` before the styles and ``theme.js`` after
        the scripts, which become one module (see `joined`).
    modules : sequence of str
        Addresses of scripts on the page's own server. They may import others from there, and talk to that server; a
        page without modules talks to nobody.
    data : optional
        Plain data, which scripts read as ``JSON.parse(document.getElementById("data").textContent)``.
    """
    texts = [*filter(None, [joined(scripts)]), static("theme.js")]
    policy = [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        " ".join(["script-src", *map(_hash, texts), *(["'self'"] if modules else [])]),
        "connect-src 'self'" if modules else "connect-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    elements = [f'<script type="module">{text}</script>' for text in texts]
    elements += [f'<script type="module" src="{escape(module)}"></script>' for module in modules]
    html = _PAGE.format(
        policy="; ".join(policy),
        title=escape(title),
        style="\n".join(static(name) for name in ("base.css", *styles)),
        body=body,
        data=embedded_json(data),
        scripts="\n".join(elements),
    )
    return html.encode("utf-8", "backslashreplace").decode("utf-8")  # a lone surrogate becomes \udc80


def joined(names: Iterable[str]) -> str:
    """Join scripts into one module, since a page opened as a file can't import others.

    A script must stand after those that it imports from. All share one scope: no name may be defined twice.
    """
    text = "\n".join(static(name) for name in names)
    return _EXPORT.sub("", _IMPORT.sub("", text))


def static(name: str) -> str:
    """The text of a file under ``static/``."""
    return (STATIC / name).read_text(encoding="utf-8")


def embedded_json(data: Any) -> str:
    """JSON for a script element: no text in it can end the element or begin a comment."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def _hash(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
