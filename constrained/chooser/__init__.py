"""Choosers: a graph network that scores actions from facts and goal, a search on top, a network that reads words."""
