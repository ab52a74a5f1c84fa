"""What notebooks show: the real kernel's outputs, escaped, bounded, and in the colours of the notebook's theme."""

import base64
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from constrained import ActionKnowledge, Plan
from constrained import html as blocks
from constrained.agents.plan import Step
from constrained.knowledge.lint import check_file

ROOT = Path(__file__).parents[2]
HOSTILE = "<script>document.title = 'taken'</script> & \"q\" \u202e \x1b[31m \x00 \ud800 größe 🙂"
BROKEN = '%declare _STEP\n// one: Größe <b>\nstart: one\none: "größe <x>" two _STEP\n'


def steps(count):
    return [Step(n, f"thought {n}", f"do {n}", "ok", observation=f"seen {n}") for n in range(1, count + 1)]


def plan(given, **fields):
    return Plan("a task", "hotpotqa", "react", "embedded", True, 7, given, success=True, **fields)


class _Text(HTMLParser):
    def __init__(self):
        super().__init__()
        self.said, self.tags, self._quiet = [], [], False

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self._quiet = tag == "style"

    def handle_endtag(self, tag):
        self._quiet = False

    def handle_data(self, data):
        if not self._quiet:
            self.said.append(data)


def read(html):
    """What a reader sees of it, and the elements that it is made of."""
    parser = _Text()
    parser.feed(html)
    return " ".join(parser.said), parser.tags


def test_knowledge_shows_its_graph_and_its_actions():
    html = ActionKnowledge.from_lark("hotpotqa")._repr_html_()
    said, tags = read(html)
    assert "hotpotqa : 4 actions" in said and "the end" in said and tags.count("tr") == 5
    svg = base64.b64decode(re.search('src="data:image/svg\\+xml;base64,([^"]*)"', html)[1]).decode()
    assert svg == ActionKnowledge.from_lark("hotpotqa").to_svg()
    assert 'alt="Action graph of hotpotqa"' in html


def test_knowledge_on_a_path_says_where_it_is_and_what_is_bound():
    knowledge = ActionKnowledge.from_lark("household").bind(RECEPTACLE=["desk 1", "desk 10"])
    said, _ = read(knowledge._repr_html_())
    assert "slots with values: RECEPTACLE" in said and re.search(r"slots to be bound: .*OBJECT", said)
    assert repr(knowledge) == "ActionKnowledge('household': 14 actions, after start)"
    said, _ = read(knowledge.bind_view({"RECEPTACLE": ["desk 1", "desk 10"]}).after("go to desk 10")._repr_html_())
    assert "so far:  go to desk 10" in said and "to be bound" not in said


def test_a_plan_shows_each_step_with_its_verdict():
    given = [
        Step(1, "", "Search[x]", "ok", observation="found\nmuch", pruned_mass=0.125, phase="try 1"),
        Step(1, "", "Fly[y]", "invalid", "no action begins with 'F'", phase="try 2", subgoal="Subgoal 1: go"),
    ]
    said, tags = read(plan(given, note="cut short", outcome={"success": 1.0, "f1": 0.5})._repr_html_())
    for words in ("2 steps, solved: 1 invalid, 0 misordered actions; f1 0.5", "Note: cut short", "✗ invalid", "12.5%",
                  "no action begins with 'F'", "try 1", "try 2: Subgoal 1: go"):  # fmt: skip
        assert words in said, words
    assert "thought" not in said and tags.count("br") == 2
    open_loop = read(
        Plan("t", "hotpotqa", "cot", "m", False, 0, [Step(1, "", "a", "ok")], open_loop=True)._repr_html_()
    )[0]
    assert "observation" not in open_loop and "pruned mass" not in open_loop and "not executed" in open_loop


def test_a_report_and_a_checked_file_show_every_verdict():
    report = ActionKnowledge.from_lark("hotpotqa").check(["Lookup[x]", "Fly[<b>]", "Search[x]"])
    said, tags = read(report._repr_html_())
    assert "⇄ misordered" in said and "✗ invalid" in said and "✓ ok" in said and "Fly[<b>]" in said
    assert "3 actions: 1 invalid, 1 misordered; the path is not finished" in said and "b" not in tags
    said, tags = read(check_file(BROKEN)._repr_html_())
    assert "1 error" in said and "✗ error" in said and "undefined-rule" in said and "4:18" in said
    assert 'one: "größe <x>"  two  _STEP' in said and tags.count("mark") == 1
    assert read(check_file('start: "a"\n')._repr_html_())[0].endswith("no findings")


@pytest.mark.parametrize(
    "html",
    [
        lambda: plan([Step(1, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, phase=HOSTILE)], note=HOSTILE)._repr_html_(),
        lambda: Plan(HOSTILE, HOSTILE, HOSTILE, HOSTILE, True, 0)._repr_html_(),
        lambda: ActionKnowledge.from_lark("hotpotqa").check(["<script>", "Search[</code>]"])._repr_html_(),
        lambda: check_file(f'// {HOSTILE[:-10]}\nstart: "<script>" nothing\n')._repr_html_(),
    ],
)
def test_what_models_games_and_files_say_stays_text(html):
    text = html()
    assert "<script" not in text and "\x1b" not in text and "\x00" not in text
    text.encode()  # a notebook is a file in UTF-8
    assert not {"script", "img"} & set(read(text)[1])


def test_what_is_long_is_cut_and_said_to_be():
    said, tags = read(plan(steps(5000))._repr_html_())
    assert "4,900 rows are not shown here" in said and tags.count("tr") == blocks.MOST_ROWS + 2
    assert all(f"do {n} " in said for n in (1, 80, 4981, 5000)) and "do 81 " not in said and "do 4980 " not in said
    html = plan([Step(1, "x" * 10**6, "a", "ok")])._repr_html_()
    assert len(html) < 10_000 and "999,400 more characters" in html
    names = [f"action_{n}" for n in range(110)]
    rules = "\n".join(f'{name}: "{name}" _STEP ({" | ".join(names[n:])})?' for n, name in enumerate(names))
    html = ActionKnowledge.from_lark(f"%declare _STEP\nstart: action_0\n{rules}\n")._repr_html_()
    assert len(html) < 200_000 and "The picture is left out" in html and "10 rows are not shown here" in html


def test_short_forms_are_short_where_a_notebook_keeps_them_as_text():
    pretty = pytest.importorskip("IPython.lib.pretty")
    assert pretty.pretty(plan(steps(5000))) == "Plan('a task': solved, 5000 steps)"
    assert pretty.pretty(check_file(BROKEN)) == "Checked('<string>': 1 error)"
    report = ActionKnowledge.from_lark("hotpotqa").check(["Search[x]"])
    assert pretty.pretty(report).endswith("the path is not finished")


def test_nothing_heavy_is_imported_to_show():
    code = (
        "import sys; from constrained import ActionKnowledge, Plan; from constrained.agents.plan import Step\n"
        "k = ActionKnowledge.from_lark('hotpotqa'); k._repr_html_(); k.check(['Search[x]'])._repr_html_()\n"
        "Plan('t', 'k', 's', 'm', True, 0, [Step(1, '', 'a', 'ok')])._repr_html_()\n"
        "assert not {'torch', 'transformers', 'IPython'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


CELLS = (
    "from constrained import ActionKnowledge, Plan\nfrom constrained.agents.plan import Step\n"
    "knowledge = ActionKnowledge.from_lark('hotpotqa')\nknowledge",
    "knowledge.check(['Search[Milhouse]', 'Lookup[a]', 'Fly[b]'])",
    "Plan('t', 'hotpotqa', 'react', 'm', True, 7, [Step(1, 'why', 'Search[x]', 'ok', observation='seen')])",
    f"from constrained.knowledge.lint import check_file\ncheck_file({BROKEN!r})",
)


def run(written):
    """Run a notebook with a real kernel."""
    pytest.importorskip("ipykernel", reason="needs a kernel: pip install -c constraints.txt .[test]")
    client = pytest.importorskip("nbclient", reason="needs nbclient: pip install -c constraints.txt .[test]")
    here = {"metadata": {"path": str(ROOT)}}
    client.NotebookClient(written, timeout=1200, resources=here, kernel_name="python3").execute()
    return written


@pytest.fixture(scope="module")
def executed():
    """A notebook that a real kernel has run."""
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install -c constraints.txt .[test]")
    written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    nbformat.validate(run(written))
    return written


def test_a_real_kernel_gives_html_and_a_short_text(executed):
    for cell in executed.cells:
        (output,) = cell.outputs
        assert output.output_type == "execute_result" and set(output.data) == {"text/html", "text/plain"}
        assert output.data["text/html"].startswith('<div class="constrained-output">')
        assert len(output.data["text/plain"]) < 500


def shown_in(written) -> list[str]:
    """What each cell shows as its result, times and shares left out, which hang on the machine."""
    results = [o for cell in written.cells for o in cell.get("outputs", ()) if o.output_type == "execute_result"]
    return [re.sub(r"\d+\.\d+( s\b|%)", "", read(o.data["text/html"])[0]) for o in results]


def test_the_documents_notebook_shows_what_it_would_show_today():
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install -c constraints.txt .[test]")
    committed = nbformat.read(ROOT / "docs" / "notebook.ipynb", as_version=4)
    before = shown_in(committed)
    assert len(before) == 4
    again = "run: jupyter nbconvert --to notebook --execute --inplace docs/notebook.ipynb"
    assert shown_in(run(committed)) == before, again


def page_of(executed, theme):
    """The notebook as JupyterLab would show it, by nbconvert; what it would fetch from elsewhere left out."""
    convert = pytest.importorskip("nbconvert", reason="needs nbconvert: pip install -c constraints.txt .[test]")
    html, _ = convert.HTMLExporter(theme=theme).from_notebook_node(executed)
    return re.sub(r"<script[^>]*>.*?</script>|<link[^>]*>", "", html, flags=re.DOTALL)


BRIGHTNESS = """([element, property]) => {
  const [r, g, b] = getComputedStyle(element)[property].match(/[\\d.]+/g).map(Number);
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
}"""


@pytest.mark.parametrize("theme, system", [("light", "dark"), ("dark", "light")])
def test_it_has_the_notebooks_theme_and_not_the_systems(executed, tab, tmp_path, theme, system):
    file = tmp_path / "notebook.html"
    file.write_text(page_of(executed, theme), encoding="utf-8")
    tab.emulate_media(color_scheme=system)
    tab.goto(file.as_uri())
    cells = tab.locator(".constrained-output td")
    assert cells.count() > 20
    for words in (cells, tab.locator(".constrained-output .invalid"), tab.locator(".constrained-output .ok")):
        bright = words.first.evaluate(f"element => ({BRIGHTNESS})([element, 'color'])")
        assert bright > 0.5 if theme == "dark" else bright < 0.4
    assert cells.first.evaluate("element => getComputedStyle(element).textAlign") == "left"
    picture = tab.locator(".constrained-output img")
    assert picture.evaluate("image => image.complete && image.naturalWidth > 100")
    assert picture.evaluate("image => getComputedStyle(image).colorScheme") == theme


def test_its_styles_touch_nothing_else(executed, tab, tmp_path):
    file = tmp_path / "notebook.html"
    file.write_text(page_of(executed, "light") + "<table id=other><tr><td>x</td></tr></table>", encoding="utf-8")
    tab.goto(file.as_uri())
    names = tab.evaluate("[...document.querySelectorAll('.constrained-output style')].flatMap("
                         "style => [...style.sheet.cssRules]).map(rule => rule.selectorText)")  # fmt: skip
    assert len(names) > 40 and all(".constrained-output" in part for name in names for part in name.split(", "))


def test_a_narrow_screen_scrolls_tables_and_not_the_page(executed, tab, tmp_path):
    file = tmp_path / "notebook.html"
    body = "".join(cell.outputs[0].data["text/html"] for cell in executed.cells)
    file.write_text(f'<meta name="viewport" content="width=device-width"><body>{body}', encoding="utf-8")
    tab.set_viewport_size({"width": 360, "height": 800})
    tab.goto(file.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
