"""Read the `means`, `shows`, `again` and `explores` lines of a `.lark` file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from constrained.knowledge.world.conditions import Conditions, Scope, bound_by, plain
from constrained.knowledge.world.syntax import ParseTree
from constrained.knowledge.world.world import Again, Means, Piece, Shows, Where, Wording
from constrained.planning.model import ALWAYS, ROOT, Literal, literals_in

_HOLE = re.compile(r"\{\s*([A-Za-z_][\w-]*)\s*(,?)\s*(\.\.\.)?\s*\}")


class WordingReader(Conditions):
    """Reads these lines; holes of task sentences may be used like types."""

    def wording(self, statements: Sequence[ParseTree], captured: frozenset[str]) -> Wording:
        """Read all such lines; `captured`: the holes of all task sentences."""
        wording = Wording()
        self.captured = captured
        for statement in statements:
            if statement.data == "means":
                head = statement.children[1].children
                arguments = [term for term in head[1:] if term is not None]
                name, kinds = plain(head[0]).lower(), [ROOT] * len(arguments)
                if name in {*self.domain.predicates, *self.domain.types, *captured}:
                    raise self.span(head[0]).error(f"{name} is declared already", "choose another name")
                if self.derived.setdefault(name, kinds) != kinds:
                    raise self.span(head[0]).error(f"`{name}` has {len(self.derived[name])} arguments elsewhere")
        for statement in statements:
            match statement.data, statement.children:
                case "means", [once, atom, *conditions]:
                    literal = self.fact(atom)
                    where = tuple(self.where(condition, *literal.terms, at=atom) for condition in conditions)
                    wording.means.setdefault(literal.predicate, []).append(Means(literal, once is not None, where))
                case "shows", [label, most, condition, *pieces, otherwise]:
                    entries = self.where(condition)
                    if most is not None and not most.isdecimal():
                        raise self.span(most).error(f"{most} is not a number of entries", "write a whole number")
                    number = None if most is None else int(most)
                    written = tuple(self.piece(piece, bound_by(entries.condition)) for piece in pieces)
                    last = None if otherwise is None else plain(otherwise)
                    wording.shows.append(Shows(plain(label), number, entries, written, last))
                case "again", [*atoms, condition]:
                    for atom in atoms:
                        literal = self.fact(atom)
                        if literal.predicate not in self.domain.predicates.keys() - self.kinds:
                            raise self.span_of(atom).error(f"{literal.predicate} is not a declared fact")
                        wording.again.append(Again(literal, self.where(condition or atom, *literal.terms, at=atom)))
                case "explores", pieces:
                    wording.explores += (self.piece(piece, set()) for piece in pieces)
        return wording

    def fact(self, atom: ParseTree) -> Literal:
        literal = self.atom(atom, self.scope(), any_thing=False)
        assert isinstance(literal, Literal)
        return literal

    def scope(self) -> Scope:
        return Scope(free=True, captured=self.captured, worded=True)

    def where(self, tree: ParseTree | None, *bound: str, at: ParseTree | None = None) -> Where:
        """A condition, which must bind the variables `bound`; `at` is where these are written."""
        if tree is None:
            return Where(ALWAYS)
        read = self.conditions if tree.data == "conditions" else self.condition
        condition = read(tree, self.scope())
        self.check_bound(bound, bound_by(condition), at or tree)
        return Where(condition, frozenset(literal.predicate for literal in literals_in(condition)) & self.captured)

    def check_bound(self, names: Iterable[str], bound: set[str], at: ParseTree) -> None:
        for name in names:
            if name.startswith("?") and name not in bound:
                raise self.span_of(at).error(f"nothing says which `{name[1:]}` is meant", "name it in the condition")

    def piece(self, tree: ParseTree, bound: set[str]) -> Piece:
        """A piece of text; `bound` are the variables that its line binds."""
        text, condition = tree.children
        parts: list[str | tuple[str, str]] = []
        at, written = 0, plain(text)
        for hole in _HOLE.finditer(written):
            parts += [written[at : hole.start()], (hole[1].lower(), "," if hole[2] else hole[3] or "")]
            at = hole.end()
        where = self.where(condition)
        loose = {part[0] for part in parts[1::2]} - {name[1:] for name in bound | bound_by(where.condition)}
        self.check_bound((f"?{name}" for name in loose - self.captured), set(), tree)
        return Piece((*parts, written[at:]), Where(where.condition, where.holes | loose))
