"""A conversation under a policy: replayed message by message, and asked at each point which calls are admitted.

Masks can't be used where the model is somebody else's. Then the same policy judges each call before it is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

from constrained.errors import KnowledgeError
from constrained.grammar.json_schema import Options, validator
from constrained.grammar.source import Source
from constrained.guard.messages import Answered, Did, Event, Heard, Said, ToolCall, events_of
from constrained.guard.verdict import FACTS, ORDER, REFUSED, SCHEMA, TOOL, WORDS, Unmet, Verdict
from constrained.guard.words import YES, SaysYes, agrees, names_of_words, with_says_yes
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.lines.expression import Expression, Unknown
from constrained.knowledge.path_state import PathState
from constrained.knowledge.tool_policy import Memory, Policy, read_policy
from constrained.knowledge.tool_policy.call_writer import call_grammar
from constrained.knowledge.tool_policy.calls import Calls, listed, names_used
from constrained.knowledge.tool_policy.policy import slot_of
from constrained.limits import DEFAULT, Limits


class Guard:
    """A policy over a list of tools, ready to judge conversations.

    Parameters
    ----------
    tools : list, dict, str, Path or None
        The tools of a request, as in `ActionKnowledge.from_tools`; it may lack some that the policy's rules name, which
        can't be called then. None: they aren't known, so that calls are judged by the policy's conditions alone.
    policy : str, Path, Source or Policy
        The ``.lark`` file, its text, or a name that ships.
    says_yes : callable, optional
        ``f(said, heard) -> bool``: whether the user, whose answer to the text `said` is `heard`, agrees. It takes the
        place of the policy's own ``let yes() = ...`` and of facts that a rule's ``tells ... by "yes"`` makes true,
        which only look at words.
    limits : Limits

    Raises
    ------
    GrammarError
        The policy can't be read.
    KnowledgeError
        The policy and the tools don't fit, or `says_yes` has nothing to replace.
    """

    def __init__(
        self,
        tools: Any,
        policy: str | Path | Source | Policy,
        *,
        says_yes: SaysYes | None = None,
        limits: Limits = DEFAULT,
    ):
        read = policy if isinstance(policy, Policy) else read_policy(policy)
        if says_yes is not None:
            read = with_says_yes(read)
        self.says_yes = says_yes
        self.lists_tools = tools is not None
        knowledge = ActionKnowledge.from_tools(tools or [], policy=read, some=True, limits=limits)
        self.tools = knowledge.tools
        self.policy = self.tools.policy
        self.source = self.policy.source.path.name if self.policy.source.path else "policy"
        # Which call may follow which doesn't depend on arguments: on this path, a call is its slot's name.
        self.slots = knowledge.slots
        self._order = knowledge.bind(**{slot: [slot] for slot in self.slots}).state.order
        self.user_slots = frozenset(map(slot_of, self.policy.users))
        self._names = {slot_of(name): name for name in self.tools.calls}
        self._words = names_of_words(self.policy)
        self._valid: dict[str, Callable[[Any], bool]] = {}
        self._options = Options(limits, closed=True)

    @property
    def start(self) -> Conversation:
        """The conversation before its first message."""
        return Conversation(self, self.policy.initial, self._order)

    def follow(self, messages: Iterable[Any]) -> Conversation:
        """The conversation after some messages, in the form of OpenAI, Anthropic, tau-bench or LangChain.

        Raises KnowledgeError: something in them can't be read.
        """
        conversation = self.start
        for event in events_of(messages):
            conversation = conversation.after(event)
        return conversation

    def fits(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether arguments are valid under their tool's schema; True of a tool that isn't in the list."""
        schema = self.tools.form.schemas.get(name)
        if schema is None:
            return True
        if name not in self._valid:
            self._valid[name] = validator(schema, self._options)
        return self._valid[name](dict(arguments))

    def given(self, call: ToolCall) -> dict[str, Any]:
        """The arguments of a call that its tool has: no other name may stand for something that the policy knows."""
        given = call.arguments if isinstance(call.arguments, Mapping) else {}
        known = self.tools.calls[call.name].order if call.name in self.tools.calls else given
        return {key: value for key, value in given.items() if key in known}

    def unmet(self, expression: Expression) -> Unmet:
        """A condition that doesn't hold, in words."""
        line = expression.at[0] if expression.at else None
        kind = WORDS if self._only_words(expression) else FACTS
        return Unmet(expression.words or expression.text, kind, expression.text, line, self.source)

    def _only_words(self, expression: Expression) -> bool:
        used = names_used(expression, self.policy.functions)
        known = used & (set(self.policy.initial) | self.policy.stored | self._words)
        return bool(known) and known <= self._words

    def out_of_order(self, what: str, order: PathState) -> Unmet:
        """That something may not come at this point of the path."""
        names = (self._names.get(slot_of(rule), rule) for rule in order.may_follow)
        return Unmet(f"{what} may not come now; may come: {', '.join(names) or 'nothing'}", ORDER, source=self.source)

    @cached_property
    def looks_at_text(self) -> bool:
        """Whether a condition looks at what the assistant says, so that it can only be judged when it is whole."""
        calls = self.tools.calls.get(self.policy.message)
        return calls is not None and bool(calls.governed)


@dataclass(frozen=True)
class Conversation:
    """One point of a conversation; it never changes, and what comes next makes another.

    Attributes
    ----------
    guard : Guard
    memory : Memory
        What is known, as the policy's lines say.
    order : PathState
        Which call may come next.
    said : str
        The assistant's last text.
    waiting : tuple of Call
        Calls without a result.
    promised : Memory or None
        What holds if all calls that wait succeed; None if none waits.
    violations : int
        Calls that got a result although they were not admitted.
    """

    guard: Guard
    memory: Memory
    order: PathState
    said: str = ""
    waiting: tuple[ToolCall, ...] = ()
    promised: Memory | None = None
    violations: int = 0

    # what happens

    def after(self, event: Event) -> Conversation:
        """The conversation after what the user or the assistant said or did, or a call's result."""
        match event:
            case Heard(text):
                return self.heard(text)
            case Answered(identity, result, by_user):
                return self.answered(identity, result, by_user=by_user)
            case Did(calls):
                return reduce(Conversation.called, calls, self)
            case Said(text, calls):
                if not calls:
                    return self.spoke(text)
                return reduce(Conversation.called, calls, replace(self, said=text) if text else self)
        raise AssertionError(event)

    def heard(self, text: str) -> Conversation:
        """The conversation after the user's words: the answer to what the assistant said last."""
        policy = self.guard.policy
        if not policy.message:
            return self
        memory = self.memory
        if self.guard.says_yes is not None:
            memory = memory.with_values(**{YES: agrees(self.guard.says_yes, self.said, text)})
        memory = policy.told(memory, policy.message, {"content": self.said}, text)
        return self._with(memory, self.waiting)

    def spoke(self, text: str) -> Conversation:
        """The conversation after a text of the assistant."""
        message = self.guard.policy.message
        order = self._ordered(slot_of(message)) if message and text else self.order
        return replace(self, said=text, order=order)

    def called(self, call: ToolCall, *, refused: bool | None = None) -> Conversation:
        """The conversation after a call, whose result may come later; also after one that was not admitted.

        `refused`: whether it was not, where that is known. What the user does with their own tools is no violation of
        the assistant's; calls in the user's name of any other tool are ignored.
        """
        if call.by_user and slot_of(call.name) not in self.guard.user_slots:
            return self
        if self.guard.policy.message == call.name and isinstance(call.arguments, Mapping):
            said = str(call.arguments.get("content", ""))
            return replace(self, said=said, order=self._ordered(slot_of(call.name)))
        if refused is None and not call.by_user:
            try:
                refused = bool(self._unmet(call.name, call.arguments, offered=False))
            except RecursionError:
                refused = True
        call = call._replace(refused=bool(refused))
        order = self._ordered(slot_of(call.name))
        return replace(self._with(self.memory, (*self.waiting, call)), order=order)

    def answered(self, identity: str, result: Any, *, by_user: bool = False) -> Conversation:
        """The conversation after the result of the call with this identity (without one: of the oldest that waits).

        A result of nothing that waits is ignored, and so is a guard's own answer to a call that it refused.
        """
        own = [call for call in self.waiting if call.by_user == by_user]
        waits = [call for call in own if call.identity == identity] or ([] if identity else own[:1])
        if not waits:
            return self
        call, rest = waits[0], tuple(one for one in self.waiting if one is not waits[0])
        if call.refused and isinstance(result, str) and result.startswith(REFUSED):
            return self._with(self.memory, rest)  # it was not carried out
        memory = self.memory
        if isinstance(call.arguments, Mapping) and slot_of(call.name) in self.guard.slots:
            policy = self.guard.tools.named(call.name)
            try:
                memory = policy.told(memory, call.name, self.guard.given(call), result)
            except RecursionError:
                raise KnowledgeError(f"the result of {call.name} is nested too deeply", "give it flatter") from None
        return replace(self._with(memory, rest), violations=self.violations + call.refused)

    def _with(self, memory: Memory, waiting: tuple[ToolCall, ...]) -> Conversation:
        promised = None
        for call in waiting:
            if isinstance(call.arguments, Mapping) and slot_of(call.name) in self.guard.slots:
                policy = self.guard.tools.named(call.name)
                promised = policy.promised(memory if promised is None else promised, call.name, self.guard.given(call))
        return replace(self, memory=memory, waiting=waiting, promised=promised)

    @property
    def _memories(self) -> list[Memory]:
        """What is known if all calls that wait fail, and if all succeed; an empty memory is one, too."""
        return [self.memory] if self.promised is None else [self.memory, self.promised]

    def _ordered(self, slot: str) -> PathState:
        return self.order if slot not in self.guard.slots else self.order.judged(slot)[1]

    # what may happen

    def judge(
        self, name: str, arguments: Mapping[str, Any] | str, *, allowed: bool = True, by_user: bool = False
    ) -> Verdict:
        """Judge a call as the next one. Where earlier calls wait for results, it must do whether or not they succeed.

        Parameters
        ----------
        name : str
        arguments : mapping or str
            A text is what the model wrote where that isn't a JSON object.
        allowed : bool
            Work out what may be called instead, which takes longer than the verdict.
        by_user : bool
            The user calls a tool of their own, which the list of tools needn't have.
        """
        try:
            unmet = self._unmet(name, arguments, offered=self.guard.lists_tools and not by_user)
        except RecursionError:
            unmet = [_too_deep(self.guard.source)]
        if not unmet:
            return Verdict(name, arguments)
        may = self.allowed() if allowed else None
        return Verdict(name, arguments, tuple(unmet), may, not allowed or not self.judge_text(""))

    def _unmet(self, name: str, arguments: Mapping[str, Any] | str, *, offered: bool) -> list[Unmet]:
        guard, source = self.guard, self.guard.source
        slot = slot_of(name)
        if offered and name not in guard.tools.calls:
            what = "no rule of the policy is about this tool" if slot not in guard.slots else "there is no such tool"
            return [Unmet(what, TOOL, source=source)]
        if slot not in guard.slots:
            return [Unmet("no rule of the policy is about this tool", TOOL, source=source)]
        if not isinstance(arguments, Mapping):
            return [Unmet(f"its arguments are not a JSON object: {arguments[:80]}", SCHEMA, source=source)]
        failed: list[Expression] = []
        for memory in self._memories:
            try:
                calls = guard.tools.calls_of(name, arguments)
                failed += calls.failed(memory, guard.given(ToolCall(name, arguments)))
            except KnowledgeError as error:  # such as a condition that takes too long: nothing is admitted by it
                return [Unmet(error.message, FACTS, source=source)]
        unmet = [guard.unmet(expression) for expression in dict.fromkeys(failed)]
        if not self.order.judge(slot):
            unmet.append(guard.out_of_order("it", self.order))
        if not unmet and not guard.fits(name, arguments):
            unmet.append(Unmet("its arguments don't fit the tool's schema", SCHEMA, source=source))
        return unmet

    def judge_text(self, text: str) -> list[Unmet]:
        """The conditions on speaking to the user that don't hold; of an empty text, those that any text needs."""
        message = self.guard.policy.message
        if not message:
            return []
        calls = self.guard.tools.calls[message]
        arguments = {"content": text}
        failed = calls.failed(self.memory, arguments) if text else _static(calls, self.memory)
        unmet = [self.guard.unmet(expression) for expression in failed]
        if not self.order.judge(slot_of(message)):
            unmet.append(self.guard.out_of_order("a message", self.order))
        return unmet

    def admitted(self, calls: Sequence[ToolCall]) -> tuple[int, Verdict | None]:
        """How many of an answer's calls are admitted, from the first on, and the verdict on the one that isn't."""
        now = self
        for number, call in enumerate(calls):
            verdict = now.judge(call.name, call.arguments)
            if not verdict:
                return number, verdict
            now = now.called(call, refused=False)
        return len(calls), None

    def allowed(self) -> dict[str, dict[str, list[Any]]]:
        """The tools that may be called now, each with the values of its arguments where the policy lists them."""
        guard, found = self.guard, {}
        for name, calls in guard.tools.calls.items():
            if name == guard.policy.message or not self.order.judge(slot_of(name)):
                continue
            if all(_possible(calls, memory) for memory in self._memories):
                found[name] = _values(calls, self._memories[-1])
        return found


def _too_deep(source: str) -> Unmet:
    return Unmet("its arguments are nested too deeply", SCHEMA, source=source)


def _static(calls: Calls, memory: Memory) -> list[Expression]:
    evaluation = memory.evaluation(calls.functions)
    return [expression for expression in calls.static if not expression.holds(memory, evaluation)]


def _possible(calls: Calls, memory: Memory) -> bool:
    """Whether some call of a tool is admitted."""
    try:
        return call_grammar(calls, memory) is not None
    except KnowledgeError:
        return False


def _values(calls: Calls, memory: Memory) -> dict[str, list[Any]]:
    """Argument -> the values that it may have, as far as that doesn't depend on other arguments."""
    found: dict[str, list[Any]] = {}
    evaluation = memory.evaluation(calls.functions)
    for path, conditions in calls.domains.items():
        for condition in conditions:
            if len(path) != 1 or not condition.sign or set(condition.values.names) & set(calls.order):
                continue
            try:
                values = condition.listed({**memory}, evaluation)
            except (Unknown, TypeError):
                values = []
            [name] = path
            earlier = found.get(name, listed(calls.schema["properties"][name]) or None)
            found[name] = list(values) if earlier is None else [value for value in earlier if value in values]
    return found
