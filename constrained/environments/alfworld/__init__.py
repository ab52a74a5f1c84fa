"""Real ALFWorld: its games in its original engine, where that is installed (the extra ``alfworld``)."""
