"""HTML pages: the trace of a run, a list of runs, and local servers for pages."""
