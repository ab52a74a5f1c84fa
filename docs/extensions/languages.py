"""The languages of our code blocks that Pygments doesn't know."""

from pygments.lexer import RegexLexer, words
from pygments.lexers.data import JsonLexer
from pygments.lexers.lisp import CommonLispLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text


class LarkLexer(RegexLexer):
    """`.lark` files: rules, terminals, templates, directives."""

    name = "Lark"
    aliases = ["lark"]  # noqa: RUF012  (as Pygments has it)
    filenames = ["*.lark"]  # noqa: RUF012
    tokens = {  # noqa: RUF012
        "root": [
            (r"//[^\n]*|#[^\n]*", Comment.Single),
            (words(("%declare", "%import", "%ignore", "%override", "%extend"), suffix=r"\b"), Keyword),
            (r'"(\\.|[^"\\\n])*"i?', String.Double),
            (r"/(?!/)(\\.|[^/\\\n])+/[imslux]*", String.Regex),
            (r"^([?!]*)(_?[a-z]\w*)", Name.Function),
            (r"^_?[A-Z]\w*", Name.Constant),
            (r"_STEP\b", Keyword.Pseudo),
            (r"_?[A-Z][A-Z0-9_]*\b", Name.Constant),
            (r"_?[a-z]\w*", Name),
            (r"-?\d+", Number),
            (r"->|\.\.|[|?*+~]", Operator),
            (r"[()\[\]{}:,.=<>]", Punctuation),
            (r"\s+", Text.Whitespace),
        ]
    }


def setup(app):
    app.add_lexer("lark", LarkLexer)
    app.add_lexer("jsonl", JsonLexer)
    app.add_lexer("pddl", CommonLispLexer)
    return {"parallel_read_safe": True}
