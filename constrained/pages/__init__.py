"""Pages for people: what an agent wrote and could not write, shown in a browser."""
