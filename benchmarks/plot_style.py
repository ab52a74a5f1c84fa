"""The style of all pictures: readable without colour, and files that don't depend on the date."""

from __future__ import annotations

from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from constrained.errors import ConstrainedError
from constrained.files import write_whole

SUFFIXES = (".svg", ".png", ".pdf")
INK, SOFT, FAINT = "#1a1a1a", "#5c5c5c", "#c8c8c8"
"""For our figures, for text beside them, and for guide lines: distinguished by lightness alone."""

SMALL = 7.5
"""Font size beside marks and under the picture; elsewhere it is 9, for the title 11."""

MARKS = {
    "ours": {"marker": "D", "markersize": 6.5, "color": INK},
    "other": {"marker": "o", "markersize": 6.5, "color": INK, "markerfacecolor": "white"},
    "form": {"marker": "v", "markersize": 6, "color": SOFT, "markerfacecolor": "white"},
    "sound": {"marker": "s", "markersize": 5.5, "color": SOFT, "markerfacecolor": "white"},
    "goal": {"marker": "^", "markersize": 6.5, "color": SOFT},
    "crossed": {"marker": "x", "markersize": 6.5, "color": SOFT, "markeredgewidth": 1.4},
}
"""Marks differ in shape, and in being filled or open."""


def check(path: Path) -> None:
    """Check that a picture can be drawn and saved, before anything long is begun.

    Raises
    ------
    ConstrainedError
        matplotlib is missing, the file's ending isn't one of `SUFFIXES`, or it is a folder.
    """
    if path.suffix not in SUFFIXES or path.is_dir():
        raise ConstrainedError(f"can't draw {path}", f"name a file that ends in {', '.join(SUFFIXES)}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ConstrainedError("the plot needs matplotlib", "pip install matplotlib") from None


@contextmanager
def drawing(path: Path, title: str, width: float, height: float, **panels):
    """A figure of `width` by `height` inches with axes (`panels` of `pyplot.subplots`), saved to `path` at the end.

    The file is written whole, or not at all.
    """
    check(path)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    style = {
        "svg.hashsalt": "constrained", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 9,
        "text.parse_math": False,  # a name in a result may have a $ in it
        "axes.edgecolor": SOFT, "xtick.color": SOFT, "xtick.labelcolor": INK, "axes.labelcolor": INK, "text.color": INK,
    }  # fmt: skip
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(width, height), **panels)
        try:
            yield figure, axes
            words = cut(title, 110)
            figure.text(0.1 / width, 1 - 0.1 / height, words, ha="left", va="top", fontsize=11, fontweight="bold")
            _save(figure, path, words)
        finally:
            pyplot.close(figure)


def _save(figure, path: Path, title: str) -> None:
    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}  # a date would change the file
    picture = BytesIO()  # drawn first: if that fails, the old file is kept
    figure.savefig(picture, format=path.suffix[1:], metadata={"Title": title, **dated[path.suffix]}, facecolor="white")
    write_whole(path, picture.getvalue())


def cut(text: str, most: int) -> str:
    """A text as one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def caption(figure, words: str) -> None:
    """Put the source of the figures at the lower left."""
    width, height = figure.get_size_inches()
    figure.text(0.1 / width, 0.09 / height, cut(words, 220), ha="left", va="bottom", color=SOFT, fontsize=SMALL)


def key(figure, words: dict[str, str], top: float) -> None:
    """Draw the legend as one line at the left, `top` inches below the upper edge; `words` by kind of mark."""
    height = figure.get_size_inches()[1]
    axis = figure.axes[0]
    handles = [axis.plot([], [], linestyle="", label=text, **MARKS[kind])[0] for kind, text in words.items()]
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0, 1 - top / height), ncols=len(handles), frameon=False,
        handletextpad=0.2, columnspacing=1.6, borderaxespad=0.0, borderpad=0.2,
    )  # fmt: skip


def plain(axis, title: str, along: str = "x") -> None:
    """Style an axis: title at the left, a faint grid in one direction, no frame except the lower line."""
    axis.set_title(title, fontsize=9, loc="left", fontweight="bold")
    axis.grid(axis=along, color="#e2e2e2", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
