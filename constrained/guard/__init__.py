"""A guard around any agent: a policy judges the calls of models whose tokens can't be masked."""

from constrained.guard.conversation import Conversation, Guard
from constrained.guard.verdict import Refused, Unmet, Verdict
from constrained.guard.wrapped import GuardedSession, GuardedTools, guard

__all__ = ["Conversation", "Guard", "GuardedSession", "GuardedTools", "Refused", "Unmet", "Verdict", "guard"]
