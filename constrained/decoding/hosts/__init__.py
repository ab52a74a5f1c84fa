"""Our masks where users already are: transformers, Outlines, vLLM.

One module a host, imported by its name, so that nobody pays for a host they don't use.
"""
