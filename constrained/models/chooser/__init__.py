"""Choosers for planning domains: a graph network that scores actions from facts and goal, and a search that uses it."""
