"""tau2-bench's telecom, in which the user has tools, too."""
