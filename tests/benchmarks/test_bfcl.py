"""BFCL: its data, its verdicts, its calls as text, and what the masks admit of its accepted answers."""

from __future__ import annotations

import argparse
import io
import json
import random
import tarfile
import warnings
from functools import cache
from pathlib import Path

import pytest

from benchmarks.bfcl import checker, command, judge
from benchmarks.bfcl.gold import variants
from benchmarks.bfcl.prompts import OWN, our_request, own_messages
from benchmarks.bfcl.questions import CATEGORIES, Question, read_questions
from benchmarks.bfcl.sound import OTHER, check_sound, misfits, refusal
from benchmarks.bfcl.written import NoCalls, in_language, read_own_form, read_tool_calls
from benchmarks.result_files import DOCS, RESULTS
from constrained.cli import main
from constrained.environments.data import data_folder
from constrained.errors import ConstrainedError, DataError
from constrained.server.conversation import writable

AREA = {
    "name": "geometry.area",
    "description": "The area of a triangle.",
    "parameters": {
        "type": "dict",
        "properties": {
            "base": {"type": "integer", "description": "Its base."},
            "height": {"type": "float", "description": "Its height."},
            "unit": {"type": "string", "description": "Of length.", "enum": ["m", "cm"]},
        },
        "required": ["base", "height"],
    },
}
ACCEPTED = {"geometry.area": {"base": [3], "height": [4.0, 4.5], "unit": ["m", ""]}}


def question(category: str = "simple_python", accepted=(ACCEPTED,), functions=(AREA,)) -> Question:
    turns = [{"role": "user", "content": "The area of a triangle with base 3 and height 4, please."}]
    return Question(f"{category}_0", category, turns, list(functions), list(accepted))


def write_data(folder: Path, category: str = "simple_python", rows=1, answers=1) -> Path:
    """A folder like the benchmark's."""
    name = f"BFCL_v4_{category}.json"
    (folder / "possible_answer").mkdir(parents=True, exist_ok=True)
    one = question(category)
    line = {"id": f"{category}_0", "question": [one.messages], "function": one.functions}
    (folder / name).write_text("".join(json.dumps({**line, "id": f"{category}_{i}"}) + "\n" for i in range(rows)))
    if answers is not None:
        lines = [json.dumps({"id": f"{category}_{i}", "ground_truth": [ACCEPTED]}) for i in range(answers)]
        (folder / "possible_answer" / name).write_text("\n".join(lines))
    return folder


@cache
def the_data() -> dict[str, list[Question]]:
    if not (data_folder() / "bfcl").is_dir():
        pytest.skip("needs BFCL's questions in the data folder")
    return read_questions()


# the data


def test_questions_are_read_from_a_folder_and_from_an_archive_alike(tmp_path):
    folder = write_data(write_data(tmp_path / "data", rows=3, answers=3), "irrelevance", answers=None)
    archive = tmp_path / "half.tar.xz"
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(folder, "bfcl_v4")
    assert read_questions(folder) == read_questions(archive) == read_questions(tmp_path / "data")
    read = read_questions(archive)
    assert [*read] == ["simple_python", "irrelevance"]
    assert read["simple_python"][0] == question() and len(read["simple_python"]) == 3
    assert read["irrelevance"][0].accepted == [] and not read["irrelevance"][0].wants_calls


def test_every_category_of_the_data_has_questions_with_answers_that_name_their_tools():
    data = the_data()
    assert set(data) <= set(CATEGORIES) and len(data) > 5
    for category, questions in data.items():
        assert questions, category
        for one in questions:
            names = {function["name"] for function in one.functions}
            assert all(name in names for accepted in one.accepted for name in accepted), one.name
            assert bool(one.accepted) == (not category.endswith("relevance")), one.name


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "nowhere", "there is no"),
        (lambda folder: folder, r"no \*\*/BFCL_v\*.json in"),
        (lambda folder: write_data(folder, "multi_turn_base"), "holds no questions of BFCL"),
        (lambda folder: write_data(folder, answers=None), "has no answers to simple_python"),
        (lambda folder: write_data(folder, rows=2), "2 questions and 1 answers"),
        (lambda folder: write_data(write_data(folder) / "again").parent, "holds simple_python twice"),
    ],
    ids=["missing", "empty", "other categories", "no answers", "other counts", "twice"],
)
def test_data_that_cannot_be_read_is_one_error(tmp_path, make, words):
    with pytest.raises(DataError, match=words):
        read_questions(make(tmp_path))


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"id": 3}', '{"id": "a"}', '{"id": "a", "question": [], "function": []}',
     '{"id": "a", "question": [[{"role": "user"}]], "function": []}',
     '{"id": "a", "question": [[]], "function": [{"name": "f"}]}', "[" * 100_000],
)  # fmt: skip
def test_a_line_of_another_form_is_one_error(tmp_path, line):
    write_data(tmp_path)
    (tmp_path / "BFCL_v4_simple_python.json").write_text(line)
    with pytest.raises(DataError):
        read_questions(tmp_path)


def test_an_archive_that_is_cut_off_is_one_error(tmp_path):
    with io.BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w:xz") as tar:
            tar.add(write_data(tmp_path / "data", rows=200, answers=200), "bfcl")
        (tmp_path / "half.tar.xz").write_bytes(whole.getvalue()[: len(whole.getvalue()) // 2])
    with pytest.raises(DataError, match="can't be read"):
        read_questions(tmp_path / "half.tar.xz")


# verdicts


def both(one: Question, calls) -> bool:
    """The verdict of both checkers, which is the same; ours alone where bfcl-eval isn't installed."""
    ours = checker.is_right(one.functions, calls, one.accepted, one.category, one.language)
    if check := judge.official():
        assert judge.by_official(check, one, calls) == ours, (one.name, calls, one.accepted)
    return ours


@pytest.mark.parametrize(
    ("calls", "right"),
    [
        ([{"geometry.area": {"base": 3, "height": 4}}], True),
        ([{"geometry.area": {"base": 3, "height": 4.5, "unit": "M."}}], True),
        ([{"geometry.area": {"base": 3.0, "height": 4}}], False),
        ([{"geometry.area": {"base": True, "height": 4}}], False),
        ([{"geometry.area": {"base": 3}}], False),
        ([{"geometry.area": {"base": 3, "height": 4, "unit": "cm"}}], False),
        ([{"geometry.area": {"base": 3, "height": 4, "color": "red"}}], False),
        ([{"area": {"base": 3, "height": 4}}], False),
        ([{"geometry.area": {"base": 3, "height": 4}}] * 2, False),
        ([], False),
    ],
)
def test_a_call_is_right_if_its_values_are_accepted(calls, right):
    assert both(question(), calls) is right
    assert judge.is_right(question(), calls) is right


def test_parallel_calls_are_right_in_any_order():
    other = {"geometry.area": {"base": [5], "height": [6.0], "unit": [""]}}
    calls = [{"geometry.area": {"base": 5, "height": 6}}, {"geometry.area": {"base": 3, "height": 4}}]
    assert both(question("parallel", [ACCEPTED, other]), calls)
    assert not both(question("parallel", [ACCEPTED, other]), [calls[0], calls[0]])
    assert not both(question("parallel", [ACCEPTED, other]), calls[:1])


def test_where_no_tool_fits_any_call_is_wrong_and_any_message_right():
    assert judge.is_right(question("irrelevance", []), [])
    assert not judge.is_right(question("live_irrelevance", []), [{"geometry.area": {}}])
    assert judge.is_right(question("live_relevance", []), [{"geometry.area": {}}])
    assert not judge.is_right(question("live_relevance", []), [])


def mutated(value, rng: random.Random):
    """A value near to another: of another type, spelled otherwise, with more or less in it."""
    near = [str(value), [value], {"a": value}, None, True, "", 0, 1.5, [], {}]
    if isinstance(value, str):
        near += [value.upper() + " .", value.replace(" ", "_"), value + "x", f"'{value}'"]
    if isinstance(value, (int, float)):
        near += [value + 1, float(value), -value]
    if isinstance(value, list):
        near += [value[1:], value[::-1], tuple(value), [*value, *value[:1]], [str(item) for item in value]]
    if isinstance(value, dict):
        near += [dict([*value.items()][1:]), {**value, "more": 1}, {key: str(one) for key, one in value.items()}]
    return rng.choice(near)


def changed(calls, rng: random.Random):
    """Calls with one thing about them changed."""
    calls = json.loads(json.dumps(calls))
    at = rng.randrange(len(calls))
    [(name, arguments)] = calls[at].items()
    key = rng.choice([*arguments, "more"])
    match rng.randrange(8):
        case 0:
            arguments.pop(key, None)
        case 1:
            calls.append(calls[at])
        case 2:
            del calls[at]
        case 3:
            calls[at] = {name.replace(".", "_"): arguments}
        case _:
            arguments[key] = mutated(arguments.get(key), rng)
    return calls


def test_ours_judges_accepted_and_changed_answers_as_the_official_checker():
    if judge.official() is None:
        pytest.skip(f"needs bfcl-eval: {judge.INSTALL}")
    judged = {True: 0, False: 0}
    for questions in the_data().values():
        for one in questions:
            if not one.accepted:
                continue
            forms = [variants(accepted) for accepted in one.accepted]
            rng = random.Random(one.name)
            for number in range(max(map(len, forms))):
                calls = [form[number % len(form)] for form in forms]
                calls = in_language(calls, one.functions, one.language)
                for given in [calls, *(changed(calls, rng) for _ in range(6))]:
                    judged[both(one, given)] += 1
    assert min(judged.values()) > 3_000


def test_accepted_answers_are_right_if_they_follow_their_own_schema():
    wrong = []
    for questions in the_data().values():
        for one in questions:
            if one.accepted:
                calls = [variants(accepted)[0] for accepted in one.accepted]
                if not judge.is_right(one, in_language(calls, one.functions, one.language)):
                    wrong.append(one.name)
    # Java's values with commas, arguments that no schema has, and arguments that the answers lack though required.
    assert len(wrong) <= 10


# calls as text


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("[f(a=1, b='x')]", [{"f": {"a": 1, "b": "x"}}]),
        ("a.b.f(a=-1.5), g()", [{"a.b.f": {"a": -1.5}}, {"g": {}}]),
        ("```\n[f(a=[1, (2, 3)], b={'k': None})]\n```", [{"f": {"a": [1, (2, 3)], "b": {"k": None}}}]),
        ("[f(a=x, b=g(1), c=h(d=2), e=l[0])]", [{"f": {"a": "x", "b": "g(1)", "c": {"h": {"d": 2}}, "e": "l[0]"}}]),
        ("[f(a=2*3+1, b=2**10)]", [{"f": {"a": 7, "b": 1024}}]),
        ("[f(1, a=2)]", [{"f": {"a": 2}}]),
        ("[]", []),
        ("", []),
    ],
)  # fmt: skip
def test_calls_in_pythons_syntax_are_read(text, calls):
    assert read_own_form(text, "python") == calls


@pytest.mark.parametrize(
    "text",
    ["I can't.", "[1]", "[f(a=1]", "[f(a=9**9**9)]", "[f(a='x'*10**9)]", "[f(a=(1).real)]", "[f(a=1e99*1e99)]",
     "[f(a=1/0)]", "[f(a=[x for x in y])]", "[f(**{'a': 1}, a={[]: 1})]", "(" * 5_000,
     "[f(a='" + "x" * 30_000 + "')]"],
)  # fmt: skip
def test_a_text_that_is_no_list_of_calls_has_none(text):
    with pytest.raises(NoCalls):
        read_own_form(text, "python")


def test_what_a_model_writes_is_never_evaluated(tmp_path):
    trap = tmp_path / "trap"
    text = f"[f(a=__import__('pathlib').Path({str(trap)!r}).touch(), b=1+__import__('os').system('touch {trap}'))]"
    with pytest.raises(NoCalls):
        read_own_form(text, "python")
    assert not trap.exists()


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("[A.f(a=x, b=\"y, z\", c=3L)]", [{"A.f": {"a": "x", "b": "y, z", "c": "3L"}}]),
        ("f(a=new HashMap<String, Object>() {{ put(\"k\", 1); }}, b='s')",
         [{"f": {"a": "new HashMap<String, Object>() {{ put(\"k\", 1); }}", "b": "s"}}]),
        ("[f(a=[1, 2], b={x: 1, y: [2]}, c=() => g(1, 2))]",
         [{"f": {"a": "[1, 2]", "b": "{x: 1, y: [2]}", "c": "() => g(1, 2)"}}]),
        ("[f(x, a=1)]", [{"f": {None: "x", "a": "1"}}]),
        ("[f()]", [{"f": {}}]),
    ],
)  # fmt: skip
def test_calls_in_javas_and_javascripts_syntax_are_read(text, calls):
    assert read_own_form(text, "java") == read_own_form(text, "javascript") == calls


def in_python(calls) -> str:
    return "[" + ", ".join(
        f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
        for call in calls
        for name, arguments in call.items()
    ) + "]"  # fmt: skip


def test_ours_reads_pythons_calls_as_the_official_decoder():
    if judge.official() is None:
        pytest.skip(f"needs bfcl-eval: {judge.INSTALL}")
    for name in ("tree_sitter", "tree_sitter_java", "tree_sitter_javascript", "tenacity"):
        pytest.importorskip(name, reason="the official decoder needs the extra bfcl, and tenacity")
    from bfcl_eval.model_handler.utils import default_decode_ast_prompting

    for questions in the_data().values():
        for one in questions[::3]:
            if not one.accepted or one.language != "python":
                continue
            text = in_python([variants(accepted)[0] for accepted in one.accepted])
            rng = random.Random(one.name)
            for at in (len(text), *(rng.randrange(len(text)) for _ in range(4))):
                given = text[:at] + rng.choice("'\"(),1a=[] -") + text[at + 1 :]
                try:
                    with warnings.catch_warnings(action="ignore"):
                        theirs = default_decode_ast_prompting(given)
                except Exception:
                    with pytest.raises(NoCalls):
                        read_own_form(given, "python")
                else:
                    assert repr(read_own_form(given, "python")) == repr(theirs)


@pytest.mark.parametrize(
    "text",
    [
        "f(a=1",
        "f(a='x)",
        "f(a=(1])",
        "no call",
        "f(a=1, a=2)",
        "",
        "f(a)) b",
        "f(a=)",
        "f(a='x'y)",
        "f(a b)",
        "f(), g()",
    ],
)
def test_a_call_that_is_not_closed_is_none(text):
    with pytest.raises(NoCalls):
        read_own_form(text, "java")


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>', [{"f": {"a": 1}}]),
        ('Well: <tool_call>{"name": "f"}</tool_call>\n<tool_call>{"name": "g"}', [{"f": {}}, {"g": {}}]),
        ('```json\n[{"name": "f", "parameters": {"a": "é"}}]\n```', [{"f": {"a": "é"}}]),
        ('{"name": "f", "arguments": {}}', [{"f": {}}]),
    ],
)  # fmt: skip
def test_tool_calls_are_read(text, calls):
    assert read_tool_calls(text) == calls


@pytest.mark.parametrize(
    "text",
    ["", "f(a=1)", "<tool_call>", '<tool_call>{"name": "f", "arguments": {', '{"arguments": {}}', "[]", "3",
     '{"name": "f", "arguments": "a"}', "[" * 50_000],
)  # fmt: skip
def test_a_text_without_tool_calls_has_none(text):
    with pytest.raises(NoCalls):
        read_tool_calls(text)


@pytest.mark.parametrize(
    ("kind", "items", "value"),
    [("integer", None, 3), ("long", None, -7), ("float", None, 2.5), ("double", None, 1e-9), ("boolean", None, False),
     ("String", None, "a b"), ("Array", "String", ["a", "b"]), ("ArrayList", "String", ["a", "b c"]),
     ("ArrayList", "integer", [1, 2]), ("ArrayList", "String", []), ("HashMap", None, {"a": 1, "b": "x"}),
     ("HashMap", None, {})],
)  # fmt: skip
def test_a_value_written_in_java_is_read_as_itself(kind, items, value):
    schema = {"type": kind, "items": {"type": items}} if items else {"type": kind}
    function = {"name": "f", "parameters": {"properties": {"a": schema}}}
    [call] = in_language([{"f": {"a": value}}], [function], "java")
    assert checker.java_value(call["f"]["a"], kind, items) == value


@pytest.mark.parametrize(
    ("kind", "items", "value"),
    [("integer", None, 3), ("Bigint", None, 7), ("float", None, 2.5), ("Boolean", None, True), ("String", None, "a"),
     ("array", "String", ["a", "b"]), ("array", "integer", [1]), ("dict", None, {"a": 1, "b": "x"}),
     ("dict", None, {})],
)  # fmt: skip
def test_a_value_written_in_javascript_is_read_as_itself(kind, items, value):
    schema = {"type": kind, "items": {"type": items}} if items else {"type": kind}
    function = {"name": "f", "parameters": {"properties": {"a": schema}}}
    [call] = in_language([{"f": {"a": value}}], [function], "javascript")
    assert checker.javascript_value(call["f"]["a"], kind, items) == value


# what the masks admit


def test_accepted_answers_are_listed_with_every_value_and_with_what_may_be_left_out():
    accepted = {"f": {"a": [1, 2], "b": ["x", ""], "c": [{"k": [3, 4], "m": ["", 5]}]}}
    assert variants(accepted) == [
        {"f": {"a": 1, "b": "x", "c": {"k": 3, "m": 5}}},
        {"f": {"a": 2, "b": "x", "c": {"k": 4, "m": 5}}},
        {"f": {"a": 1, "b": "x", "c": {"k": 3}}},
        {"f": {"a": 1, "c": {"k": 3, "m": 5}}},
    ]


def test_a_call_that_the_masks_refuse_is_explained():
    knowledge = command.knowledge_of(question())
    assert refusal(knowledge, {"geometry.area": {"base": 3, "height": 4.5}}) == ""
    assert refusal(knowledge, {"geometry.area": {"base": 3}}) == "left out though the schema requires it"
    assert refusal(knowledge, {"geometry.area": {"base": "x", "height": 1}}) == "a text where the schema wants integer"
    assert refusal(knowledge, {"geometry.area": {"base": None, "height": 1}}) == "null where the schema wants integer"
    unit = {"geometry.area": {"base": 1, "height": 1, "unit": "km"}}
    assert refusal(knowledge, unit) == "not among the values that the schema lists"
    assert refusal(knowledge, {"circle": {}}) == "there is no such tool"
    assert [*misfits([1], {"type": "array", "minItems": 2})] == ["another number of items than the schema wants"]


def test_every_accepted_answer_that_follows_its_schema_is_admitted():
    some = {category: questions[::10] for category, questions in the_data().items()}
    sound = check_sound(some, command.knowledge_of)
    assert sound["categories"]["simple_python"]["calls"] == len(some["simple_python"])
    assert OTHER not in {**sound["never admitted"], **sound["not in every form"]}


FORMS = ("admitted in some form", "admitted in every accepted form")


def test_the_page_shows_what_was_recorded_of_accepted_answers():
    sound = json.loads((RESULTS / "bfcl_sound.json").read_text(encoding="utf-8"))["sound"]
    page = (DOCS / "tool_figures.md").read_text(encoding="utf-8")
    counts = [sum(one[key] for one in sound["categories"].values()) for key in ("calls", *FORMS)]
    nulls = sum(n for why, n in sound["not in every form"].items() if why.startswith("null "))
    words = " ".join(page.split())
    assert "Of {:,} accepted calls {:,} are admitted in some form, {:,} in every accepted form".format(*counts) in words
    assert f"null ({nulls} calls)" in words
    assert OTHER not in {**sound["never admitted"], **sound["not in every form"]}


@pytest.mark.parametrize("record", ["bfcl", "bfcl_python"])
def test_under_masks_that_want_calls_every_answer_has_some(record):
    recorded = json.loads((RESULTS / f"{record}.json").read_text(encoding="utf-8"))
    masked = [row for row in recorded["rows"] if row["row"] == command.REQUIRED]
    assert masked and all(row["calls"] for row in masked)


# prompts and the command


def test_the_benchmarks_own_prompt_is_its_packages():
    if judge.official() is None:
        pytest.skip(f"needs bfcl-eval: {judge.INSTALL}")
    from bfcl_eval.constants import default_prompts as theirs

    style = theirs.PROMPT_STYLE_TEMPLATES["classic"]
    form = style["tool_call_no_tag"].format(output_format=theirs.OUTPUT_FORMAT_MAPPING["python"], param_types="")
    tools = style["available_tools"].format(format="json", functions="{functions}")
    parts = {**style, "tool_call_format": form, "available_tools": tools}
    assert theirs.PROMPT_TEMPLATE_MAPPING["plaintext"].format(**parts) == OWN


def test_tools_of_other_languages_are_shown_as_taking_texts():
    properties = {"a": {"type": "ArrayList", "items": {"type": "String"}, "description": "A."},
                  "b": {"type": "any", "description": "B."}}  # fmt: skip
    function = {"name": "f", "description": "F.", "parameters": {"type": "dict", "properties": properties}}
    system, user = own_messages(question("simple_java", functions=[function]))
    assert "Java 8 SDK syntax" in system["content"] and '"type": "String"' not in system["content"]
    assert "elements are of type String" in system["content"] and user == question().messages[0]
    assert function["parameters"]["properties"] == properties  # the question itself isn't changed


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_masks_admit_one_call_and_several_and_a_message_where_it_is_free(choice):
    admitted = writable(our_request(question(), choice, 100), None, "hermes").grammar
    call = '<tool_call>\n{"name": "geometry.area", "arguments": {"base": 3, "height": 4}}\n</tool_call>'
    assert admitted.matches(call) and admitted.matches(f"{call}\n{call}")
    assert admitted.matches("None of the tools fits.") == (choice == "auto")
    assert not admitted.matches(call.replace("3", '"3"'))


def options(**given) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args([word for name, value in given.items() for word in (f"--{name}", str(value))])


def test_parts_and_samples_of_the_questions_are_chosen():
    questions = {"parallel": [question("parallel")] * 4 + [question("multiple")]}
    assert command.chosen(questions, options(part="chosen-on"))["parallel"] == [question("parallel")]
    assert len(command.chosen(questions, options(part="others"))["parallel"]) == 4
    assert len(command.chosen(questions, options(every=2))["parallel"]) == 3
    assert len(command.chosen(questions, options(every=2, limit=1))["parallel"]) == 1
    with pytest.raises(ConstrainedError, match="the data has no multiple"):
        command.chosen(questions, options(category="multiple"))


def test_soundness_is_checked_without_a_model(tmp_path, capsys):
    assert (
        main(["bench", "bfcl", "--sound", "--data", str(write_data(tmp_path)), "--json", str(tmp_path / "r.json")]) == 0
    )
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["sound"]["categories"]["simple_python"]["admitted in every accepted form"] == 1
    assert found["judge"] == judge.judge_name() and "| all | 1 | 1 | 1 |" in capsys.readouterr().out


def test_a_run_that_was_interrupted_goes_on_where_it_stopped(tmp_path, capsys):
    data, record = write_data(write_data(tmp_path, rows=2, answers=2), "irrelevance", answers=None), tmp_path / "r.json"
    run = ["bench", "bfcl", "--model", "embedded", "--data", str(data), "--max-tokens", "120", "--json", str(record)]
    assert main([*run, "--row", command.REQUIRED]) == 0
    first = json.loads(record.read_text())
    assert [row["row"] for row in first["rows"]] == [command.REQUIRED] * 2  # no row where no call is wanted
    assert all(row["calls"] >= 1 for row in first["rows"])  # the masks see to that
    assert main(run) == 0
    rows = json.loads(record.read_text())["rows"]
    assert rows[:2] == first["rows"] and len(rows) == 2 * 4 + 3
    assert "irrelevance" in capsys.readouterr().out
