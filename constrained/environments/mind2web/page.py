"""The elements of a recorded page: role, text, and the choices of a menu.

A page is the data set's ``cleaned_html``, in which every element has a ``backend_node_id``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import count

MAX_PAGE = 16_000_000
"""Most characters of a page; the data set's largest has 1.4 million."""
MAX_TEXT = 80
"""Most characters of an element's text in its label."""

_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_ROLES = {"a": "link", "select": "combobox", "textarea": "textbox", "input": "textbox", "img": "image"}
_INPUT_ROLES = {"button": "button", "submit": "button", "reset": "button", "image": "button", "checkbox": "checkbox",
                "radio": "radio", "range": "slider"}  # fmt: skip
_EDITABLE = frozenset(("textbox", "searchbox", "combobox", "spinbutton"))
# Attributes that describe an element without text, best first.
_DESCRIBING = ("aria_label", "label", "placeholder", "alt", "title", "text_value", "value", "name", "id")


@dataclass(frozen=True)
class Element:
    """An element of a page."""

    node: str  # its backend_node_id
    label: str  # role and text, as in "[button] Search"; unique among the elements offered together
    editable: bool = False  # whether text can be typed into it
    choices: tuple[str, ...] = ()  # of a menu


@dataclass
class ParsedNode:
    """An element of the parsed page, with the texts of everything in it."""

    tag: str
    attributes: dict[str, str]
    texts: list[str] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The element's text, or else the best of its describing attributes."""
        described = (self.attributes.get(name, "") for name in _DESCRIBING)
        inner = "" if self.tag == "select" else " ".join(self.texts)  # a menu's choices don't name it
        return next(filter(None, (" ".join(text.split()) for text in (inner, *described))), "")

    @property
    def role(self) -> str:
        """The ARIA role: that of its attribute, or the usual role of its tag."""
        if role := self.attributes.get("role") or self.attributes.get("aria_role"):
            return " ".join(role.split())
        if self.tag == "input":
            return _INPUT_ROLES.get(self.attributes.get("type", "").lower(), "textbox")
        return _ROLES.get(self.tag, self.tag)

    @property
    def editable(self) -> bool:
        """Whether text can be typed into it."""
        return self.role in _EDITABLE and self.tag != "select" or "contenteditable" in self.attributes


def read_page(html: str) -> dict[str, ParsedNode]:
    """The elements of a page by their node ids, in the page's order."""
    reader = _PageReader()
    reader.feed(html)
    reader.close()
    return reader.nodes


def elements(page: dict[str, ParsedNode], nodes: Iterable[str]) -> list[Element]:
    """These nodes of a page as elements, without those that it lacks; equal labels are numbered."""
    by_label: dict[str, Element] = {}
    for name in nodes:
        if name not in page:
            continue
        node = page[name]
        plain = label = f"[{node.role}] {node.text[:MAX_TEXT].rstrip()}".rstrip()
        numbers = count(2)
        while label in by_label:
            label = f"{plain} ({next(numbers)})"
        by_label[label] = Element(name, label, node.editable, tuple(dict.fromkeys(node.choices)))
    return list(by_label.values())


class _PageReader(HTMLParser):
    """Reads pages that are written as HTML or as XML, in which any element may close itself."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.nodes: dict[str, ParsedNode] = {}
        self._open: list[ParsedNode] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in _VOID:
            self._open.append(self._last)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name.replace("-", "_"): value or "" for name, value in attrs}
        self._last = ParsedNode(tag, attributes)
        if node := attributes.get("backend_node_id"):
            self.nodes.setdefault(node, self._last)

    def handle_endtag(self, tag: str) -> None:
        depth = next((i for i in reversed(range(len(self._open))) if self._open[i].tag == tag), None)
        if depth is None:
            return
        closed = self._open[depth]
        del self._open[depth:]
        if tag == "option" and closed.text:
            for node in reversed(self._open):
                if node.tag == "select":
                    node.choices.append(closed.text)
                    break

    def handle_data(self, data: str) -> None:
        if data := " ".join(data.split()):
            for node in self._open:
                # Labels show only the beginning, so no element needs to keep all text of a long page.
                if sum(map(len, node.texts)) < MAX_TEXT:
                    node.texts.append(data)
