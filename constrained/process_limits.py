"""What a process of ours may take that works on what others wrote."""

from __future__ import annotations


def limit_memory(bytes_: int) -> None:
    """Let this process take so many more bytes than it has now, and no more (Linux; elsewhere nothing is limited)."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return
    resource.setrlimit(resource.RLIMIT_AS, (taken + bytes_, taken + bytes_))
