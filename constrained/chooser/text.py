"""`TextChooser` chooses actions from text, for worlds without known facts (ScienceWorld)."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import torch

from constrained.chooser.reader import Moment, Reader
from constrained.chooser.story import Story, Words, blocks_of, forms_of
from constrained.chooser.weights import TEXTS, read_file
from constrained.decoding.choosers import Choice
from constrained.errors import DataError, ModelError

EMBEDDED = Path(__file__).with_name("scienceworld.safetensors")

TRIED = 150
"""Most pairs of a form and a first name that are tried for one that is admitted and not repeated too often."""


class TextChooser:
    """Chooses the form of an action, its first name and its second by their scores, greedily.

    It reads the memory's text and the values of the slots. An action that was repeated without anything new to see,
    more often than any action of its form in training, is chosen only if all admitted actions were.

    Parameters
    ----------
    path : str or Path, optional
        A file of weights, after which it is named; default: those that play ScienceWorld.
    """

    def __init__(self, path: str | Path = EMBEDDED):
        self.path = Path(path)
        self.name = self.path.stem
        self.digest = sha256(self.path.read_bytes()).hexdigest()[:16]
        self.reader, self._repeats = load_reader(self.path)
        self._story: tuple[list[str], Story] | None = None

    def choose(self, choice: Choice) -> str:
        """The best of the actions.

        Raises
        ------
        ModelError
            There is no memory to read.
        """
        if choice.knowledge is None or not choice.remembered:
            raise ModelError(
                f"{self.name} reads what a memory tells, and this environment has none", "use another model"
            )
        story = self._read(choice.remembered)
        view = {
            slot: [value.decode() for value in values] for slot, values in choice.knowledge.grammar.bindings.items()
            if isinstance(values, tuple)
        }  # fmt: skip
        # Try the best pairs of form and first name; of a form with two names the second is chosen given the first. The
        # first admitted action that isn't repeated too often is taken.
        look = story.look(forms_of(choice.knowledge, view), view)
        admitted = set(choice.actions)
        best: dict[bool, str] = {}
        with torch.inference_mode():
            first, _ = self.reader([story], [Moment(0, len(story.steps), look)])
            order = first[0].flatten().sort(descending=True)
            for score, place in zip(order.values[:TRIED].tolist(), order.indices.tolist()):
                if score == -torch.inf or False in best:
                    break
                form, at = divmod(place, first.shape[2])
                for action in self._whole(story, look, form, at):
                    if action in admitted:
                        tired = story.repeated(action) > self._repeats.get(str(form), 0)
                        best.setdefault(tired, action)
                        if not tired:
                            break
        return best.get(False) or best.get(True) or choice.random.choice(choice.actions)

    def _whole(self, story: Story, look, form: int, at: int) -> list[str]:
        """The actions of a form with a first name, the best first."""
        # A second name needs another pass of the network, which is given form and first name.
        slots = self.reader.words.of_form(form)
        text = self.reader.words.forms[form]
        marks = [f"<{self.reader.words.slots[slot]}>" for slot in slots]
        if len(slots) < 2:
            return [text.replace(marks[0], look.names[at]) if slots else text]
        moment = Moment(0, len(story.steps), look, (form, at, 0), story.second(look, look.names[at]))
        _, second = self.reader([story], [moment])
        order = second[0].sort(descending=True)
        names = [look.names[i] for i, score in zip(order.indices.tolist(), order.values.tolist()) if score > -torch.inf]
        return [text.replace(marks[0], look.names[at], 1).replace(marks[1], name, 1) for name in names[:5]]

    def _read(self, text: str) -> Story:
        """The story of a text, which continues the last one's if the text does."""
        blocks = blocks_of(text)
        held = self._story
        if held is None or held[0] != blocks[: len(held[0])]:
            held = self._story = [], Story(self.reader.words, blocks[0])
            held[0].append(blocks[0])
        for block in blocks[len(held[0]) :]:
            held[1].update(block)
            held[0].append(block)
        return held[1]


def load_reader(path: Path) -> tuple[Reader, dict[str, int]]:
    """Read a network, and how often an action of each form may be repeated; errors as of `read_file`."""
    hint = "give what tools/scienceworld_model wrote"
    head, tensors = read_file(path, TEXTS, hint)
    try:
        reader = Reader(Words.of(head["words"], head["forms"]), head["width"], head["embedded"])
        reader.load_state_dict({name: torch.from_numpy(values) for name, values in tensors.items()})
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise DataError(f"can't read {path}: {error}", hint) from None
    return reader.eval(), head["repeats"]
