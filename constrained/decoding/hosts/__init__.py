"""Masks in hosts that run their own generation loop: one module for each host, imported by its name.

`hf_processor`: transformers' `generate`. `hf_continuous`: its continuous batching. `outlines_backend`: Outlines, with
transformers, llama.cpp and MLX models. `vllm_processor` and `vllm_backend`: vLLM. `sglang_backend`: SGLang. A new host
needs what `hf_processor` does where it shows whole rows at every step, a `hf_continuous.Follower` where it shows a
request's tokens so far, a `request_matcher.RequestMatcher` where it keeps an object per request; `specification` reads
grammars from JSON, for requests that come from other processes.
"""
