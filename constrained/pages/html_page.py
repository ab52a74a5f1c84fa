"""One HTML text with everything in it: styles, scripts and data, nothing loaded from anywhere."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable
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
    modules: Iterable[str] = (),
    data: Any = None,
    connect: bool = False,
) -> str:
    """A whole page.

    Parameters
    ----------
    title : str
        Plain text.
    body : str
        HTML; what is in it from elsewhere must be escaped already.
    styles, scripts : iterable of str
        Names of files under ``static/``, in order, after ``base.css`` and before ``theme.js``, which every page has.
        The scripts become one module (see `joined`).
    modules : iterable of str
        Addresses of scripts on the server that the page comes from, for pages that have one: these may import others
        from there.
    data : optional
        Plain data, which scripts read as ``JSON.parse(document.getElementById("data").textContent)``.
    connect : bool
        The page may talk to the server that it came from; else to nobody.

    Returns
    -------
    str
        The policy in its head lets the browser run these very scripts and no others, whatever `data` holds.
    """
    texts, modules = [*filter(None, [joined(scripts)]), static("theme.js")], list(modules)
    policy = [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        " ".join(["script-src", *map(_hash, texts), *(["'self'"] if modules else [])]),
        "connect-src 'self'" if connect else "connect-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    text = _PAGE.format(
        policy="; ".join(policy),
        title=escape(title),
        style="\n".join(static(name) for name in ("base.css", *styles)),
        body=body,
        data=embedded_json(data),
        scripts="\n".join(
            [f'<script type="module">{text}</script>' for text in texts]
            + [f'<script type="module" src="{escape(module)}"></script>' for module in modules]
        ),
    )
    return text.encode("utf-8", "backslashreplace").decode("utf-8")  # half a character from somewhere stays \udc80


def joined(names: Iterable[str]) -> str:
    """Scripts as one module, each after those that it imports from: a page by itself has no files to load them from.

    All of them share one scope, so no name may be given twice.
    """
    text = "\n".join(static(name) for name in names)
    return _EXPORT.sub("", _IMPORT.sub("", text))


def static(name: str) -> str:
    """The text of a file under ``static/``."""
    return (STATIC / name).read_text(encoding="utf-8")


def embedded_json(data: Any) -> str:
    """JSON that can stand in a script element: no text in it ends the element or begins a comment."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def _hash(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
