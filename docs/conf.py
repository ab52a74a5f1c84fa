"""How Sphinx builds the site: `make docs`, or `sphinx-build -W docs build/docs`."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "extensions")]

from docutils import nodes  # noqa: E402
from sphinx.domains.python import PyXRefRole  # noqa: E402

from constrained import __version__  # noqa: E402  (of this checkout, installed or not)

project = "constrained"
author = "the authors of constrained"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "command_reference", "languages"]
exclude_patterns = ["extensions"]

# Pages are Markdown that a code host shows, too: nothing of MyST's own but the table of contents.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]  # of the page of commands, which is written here

smartquotes_action = "D"  # dashes: quotes stay as they were typed

# Docstrings: NumPy's sections.
default_role = "name"
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # a list like that of parameters
napoleon_use_param = napoleon_use_rtype = False  # types are words here, not names to link
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings have them in words
autodoc_preserve_defaults = True
add_module_names = False
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "constrained"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("copy.js", {"defer": "defer"})]
html_copy_source = False
html_show_search_summary = False  # would be fetched, which a browser refuses where pages are opened as files
html_show_copyright = False
pygments_style = "github-light-colorblind"
pygments_dark_style = "github-dark-colorblind"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5a8a", "color-brand-content": "#0b5a8a"},
    "dark_css_variables": {"color-brand-primary": "#7cc4f0", "color-brand-content": "#7cc4f0"},
}


def setup(app):
    app.add_role("name", _name)
    # What a property's or constant's docstring says before a colon is no type, as napoleon would have it.
    app.connect("autodoc-process-docstring", _sentence, priority=400)
    app.connect("autodoc-process-signature", _unsigned)
    app.connect("doctree-read", _units)
    return {"parallel_read_safe": True}


def _sentence(app, what, name, obj, options, lines):
    if what in ("property", "attribute", "data"):
        lines.insert(0, "")


def _unsigned(app, what, name, obj, options, signature, returned):
    # What others are to write has no constructor of ours.
    return ("", None) if getattr(obj, "_is_protocol", False) else None


def _units(app, doctree):
    # A figure and its unit stay on one line: in narrow columns of tables they would be parted.
    for text in list(doctree.findall(nodes.Text)):
        if not isinstance(text.parent, (nodes.literal, nodes.literal_block)):
            kept = re.sub(r"(?<=\d) (?=(?:%|ns|µs|ms|s|B|kB|MB)(?:\W|$))", "\N{NO-BREAK SPACE}", text)
            text.parent.replace(text, nodes.Text(kept))


def _name(role, rawtext, text, line, inliner, options=None, content=()):
    """`name` in a docstring: code, and a link where it is a dotted name, or a class, that has a place here."""
    if re.fullmatch(r"[A-Z]\w*|\w+(\.\w+)+", text):
        return PyXRefRole()("py:obj", f":py:obj:`{text}`", text, line, inliner)
    return [nodes.literal(rawtext, text)], []
