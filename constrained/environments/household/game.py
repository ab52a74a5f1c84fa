"""`Game`: a household at its start, a goal, and the sentence that states it; and the readers of ALFWorld's game files.

A game file (``game.tw-pddl``) is JSON with a PDDL problem and a text grammar. Files are read one at a time, or from the
archive of a whole split.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from constrained.environments.data import archive_files, data_file, data_folder, folder_files
from constrained.environments.world import Answers, shipped_world
from constrained.errors import DataError, GameError
from constrained.knowledge.world import World
from constrained.knowledge.world_state import WorldState
from constrained.planning.facts import FactSet
from constrained.planning.model import Condition, Problem, renamed
from constrained.planning.problem import read_problem_of
from constrained.planning.task import PlanningTask

SPLITS = ("valid_seen", "valid_unseen", "train")
GAME_FILE = "game.tw-pddl"
NAMES = "names have the form TASK/TRIAL, like the games' folders"

_TASK = re.compile(r"Your task is to: ([^\"\\\n]+)")
_UNSOLVABLE = re.compile(rb'"solvable"\s*:\s*false')


MAX_OBJECTS = 5_000
"""Most objects that a problem may declare; the largest game file of ALFWorld has 363."""


def household_world() -> World:
    """The world of ``grammars/household_game.lark``: the household's true physics, as the game plays it."""
    return shipped_world("household_game")


@dataclass(frozen=True)
class Game:
    """One game, ready to be played any number of times.

    Attributes
    ----------
    name : str
        "TASK/TRIAL" for ALFWorld's games.
    task : str
        The task sentence, as in "put a clean mug in coffeemachine."
    start : WorldState
        The facts at the start and the goal, under the player's names.
    """

    name: str
    task: str
    start: WorldState = field(repr=False)

    @classmethod
    def from_problem(cls, name: str, task: str, problem: Problem) -> Game:
        """Set up a game from a planning problem, with the identifiers of its file, and a task sentence.

        Raises
        ------
        GameError
            The problem has too many objects, no receptacle to go to, or not one agent with a location.
        """
        world = household_world()
        planned = PlanningTask(world.domain, _named(problem))
        sites, starts = (len(planned.initial.of(fact)) for fact in ("receptacleatlocation", "atlocation"))
        if not sites or starts != 1:
            raise GameError(
                f"the game has {sites} receptacles with a location and {starts} agents with a location",
                hint="a household needs at least one receptacle and exactly one agent",
            )
        return cls(name, task, WorldState(world, planned, planned.initial))

    @property
    def problem(self) -> Problem:
        """The objects, the initial facts and the goal, under the player's names."""
        return self.start.task.problem

    @cached_property
    def receptacles(self) -> list[str]:
        """The receptacles that have a location, in the order in which the game lists them."""
        located = self.start.state.table("receptacleatlocation")
        return [name for name in self.start.task.of_type("receptacle") if located.where(1, name)]

    @cached_property
    def objects(self) -> list[str]:
        """All things that aren't receptacles, in the order in which the game lists them."""
        return [name for name, kind in self.problem.objects.items() if kind == "object"]

    def kind(self, name: str) -> str:
        """The type of a receptacle or object as ALFWorld spells it, "DrawerType"; "" if no fact gives it."""
        facts = self.start.state
        types = facts.table("receptacletype").where(1, name) | facts.table("objecttype").where(1, name)
        return next((self.start.task.spell(kind) for _, _, kind in types), "")

    def contents(self, state: FactSet) -> dict[str, set[str]]:
        """The objects in or on each receptacle; in ALFWorld's games a few objects are in two at once."""
        contents: dict[str, set[str]] = {name: set() for name in self.receptacles}
        for _, thing, receptacle in state.of("inreceptacle"):
            contents.setdefault(receptacle, set()).add(thing)
        return contents

    @cached_property
    def answers(self) -> Answers:
        """The answers to the game's actions."""
        return Answers(household_world(), self.start.task)

    def wanting(self, goal: Condition) -> Game:
        """The same game with another goal."""
        planned = PlanningTask(household_world().domain, replace(self.problem, condition=goal))
        return replace(self, start=WorldState(household_world(), planned, planned.initial))

    @classmethod
    def from_json(cls, text: str | bytes, name: str = "game") -> Game:
        """Read a game from the text of a ``game.tw-pddl``.

        Raises
        ------
        GameError
            The text isn't a whole game; the message says where it fails.
        """
        task, planned = read_game_file(text, name)
        problem = read_problem_of(household_world().domain, planned, name)
        try:
            return cls.from_problem(name, task, problem)
        except GameError as error:
            raise GameError(f"{name}: {error.message}", hint=error.hint) from error

    @classmethod
    def from_file(cls, path: str | Path) -> Game:
        """Read a game from a ``game.tw-pddl`` file; its name is "TASK/TRIAL", from the file's folders."""
        path = Path(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise GameError(f"the game file {path} can't be read: {error.strerror}") from error
        return cls.from_json(content, "/".join(path.parts[-3:-1]) if path.name == GAME_FILE else path.stem)


def _named(problem: Problem) -> Problem:
    """Rename a problem's objects as the player calls them, and put them in the order in which the game lists them."""
    if len(problem.objects) > MAX_OBJECTS:
        raise GameError(f"the game has {len(problem.objects):,} objects, more than {MAX_OBJECTS:,}")
    # Things and locations are numbered separately. Their order is that in which the game lists them.
    names = name_things(i for i, kind in problem.objects.items() if kind in ("object", "receptacle"))
    names |= name_things(i for i, kind in problem.objects.items() if kind == "location")
    objects = {name: problem.objects[i] for i, name in names.items()}
    objects |= {i: kind for i, kind in problem.objects.items() if i not in names}
    new = {i.lower(): name for i, name in names.items()}
    init = [(predicate, *(new.get(term.lower(), term) for term in terms)) for predicate, *terms in problem.init]
    # The domain's actions ask whether the agent holds anything; a file may say only what it holds.
    init += [("holdsAny", agent) for predicate, agent, *_ in init if predicate.lower() == "holds"]
    goal = None if problem.condition is None else renamed(problem.condition, new)
    return Problem(objects, tuple(init), goal, problem.name)


def name_things(identifiers: Iterable[str]) -> dict[str, str]:
    """Give each identifier its name in the game, as ALFWorld does: its kind in small letters and a number.

    Identifiers read ``Drawer_bar__plus_01_dot_63_bar_...``: the kind, then coordinates. The identifiers of one kind are
    numbered from the last in alphabetical order to the first. A basin (``Sink_bar_..._SinkBasin``) is a kind of its
    own, apart from the furniture that it is part of.

    Returns
    -------
    dict of str to str
        The name by identifier, in the order in which the game lists things: by kind and then by falling number.
    """
    counts: dict[str, int] = defaultdict(int)
    names = {}
    for identifier in sorted(identifiers, key=str.lower, reverse=True):
        kind, _, coordinates = identifier.lower().partition("_bar_")
        if "basin" in coordinates:
            kind += "basin"
        counts[kind] += 1
        names[identifier] = f"{kind} {counts[kind]}"
    return dict(reversed(names.items()))


def read_game_file(text: str | bytes, name: str) -> tuple[str, str]:
    """The task sentence and the text of the planning problem in a ``game.tw-pddl``.

    Raises
    ------
    GameError
        The file isn't whole; the message says where it fails.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:  # bad JSON, or bytes that aren't UTF-8
        raise GameError(
            f"{name} is not a whole JSON file: {error}",
            hint="the file is cut short or not a game.tw-pddl; fetch it again",
        ) from error
    problem, grammar = (data.get("pddl_problem"), data.get("grammar")) if isinstance(data, dict) else (None, None)
    if not isinstance(problem, str) or not isinstance(grammar, str):
        raise GameError(
            f"{name} has no 'pddl_problem' and 'grammar'",
            hint="a game file of ALFWorld 2.1.1 (game.tw-pddl) has both",
        )
    task = _TASK.search(grammar)
    if task is None:
        raise GameError(f"the text grammar of {name} has no 'Your task is to: ...'")
    return task.group(1), problem


def load_games(split: str = "valid_seen", *, every: int = 1) -> Iterator[Game]:
    """Yield the games of a split of ALFWorld, one at a time, sorted by name (see `game_files`).

    Parameters
    ----------
    split : {"valid_seen", "valid_unseen", "train"}
    every : int, optional
        Yield only every so many-th game: a sample of all task types, since names begin with the type.

    Raises
    ------
    GameError
        There is no such split.
    DataError
        The games aren't there.
    """
    for name, content in islice(game_files(split), 0, None, every):
        yield Game.from_json(content, name)


def load_named(names: Iterable[str], split: str = "valid_seen") -> dict[str, Game]:
    """The games of these names, "TASK/TRIAL"; the archive is read only up to the last of them.

    Raises
    ------
    DataError
        One of the games is not in the split, or there are no games.
    """
    wanted = set(names)
    games: dict[str, Game] = {}
    for name, content in game_files(split) if wanted else ():
        if name in wanted:  # reading a game takes ten times as long as unpacking it
            games[name] = Game.from_json(content, name)
            if len(games) == len(wanted):
                break
    if missing := wanted - games.keys():
        raise DataError(f"no game {min(missing)!r} in {split}", hint=NAMES)
    return games


def game_files(split: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the file of each game of a split, sorted by name.

    They are read from ALFWorld's own download, ``$ALFWORLD_DATA/json_2.1.1/SPLIT/TASK/TRIAL/game.tw-pddl``, if that
    folder is there, and otherwise from an archive of it, ``alfworld/games_2.1.1_SPLIT.tar.xz`` in the data folder. As
    in ALFWorld, games are left out that can't be solved, that have objects which contain others ("movable"), or that
    have slices.

    Raises
    ------
    GameError
        There is no such split.
    DataError
        There is neither folder nor archive, or a file can't be read.
    """
    if split not in SPLITS:
        raise GameError(f"no split {split!r}", hint=f"the splits are {', '.join(SPLITS)}")
    # ALFWorld's own download first: a user who has set the variable means those games.
    folder, archive = Path("json_2.1.1", split), f"alfworld/games_2.1.1_{split}.tar.xz"
    downloaded = os.environ.get("ALFWORLD_DATA")
    if downloaded and (Path(downloaded) / folder).is_dir():
        files = folder_files(Path(downloaded) / folder, f"*/*/{GAME_FILE}")
    elif (data_folder() / archive).is_file():
        files = archive_files(data_file(archive), lambda name: name.endswith(f"/{GAME_FILE}"))
    else:
        raise DataError(
            f"no games of {split}: neither {archive} in {data_folder()}, nor "
            + (f"{folder} in {downloaded}" if downloaded else "the variable ALFWORLD_DATA"),
            hint="`alfworld-download` of the package alfworld fetches them: set ALFWORLD_DATA to the folder it fills",
        )
    for path, content in files:
        if not _UNSOLVABLE.search(content) and "movable" not in path and "Sliced" not in path:
            yield "/".join(path.split("/")[-3:-1]), content
