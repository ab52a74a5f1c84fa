"""Processors for hosts that run their own loop; one module a host, imported by its name.

`hf_processor`: transformers' `generate`. `hf_continuous`: its continuous batching. `outlines_backend`: Outlines, with
transformers, llama.cpp and MLX models. `vllm_processor`: vLLM, both of its interfaces; `vllm_requests` is what these
share. A new host needs a `rows.Rows` where it shows whole rows at every step, or a `rows.Follower` a request;
`specification` reads grammars from JSON, for requests that come from other processes.
"""
