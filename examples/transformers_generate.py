"""Masks inside transformers' own `model.generate`: as a logits processor, and with our generation loop.

The loop appends forced text without asking the model for it; the processor works with everything `generate` offers
(beams, sampling, batches), but asks for every token.
"""

import argparse

from transformers import LogitsProcessorList

from constrained import ActionKnowledge, Vocabulary, compile_grammar
from constrained.decoding import custom_generate
from constrained.decoding.hosts.hf_processor import ConstrainedLogitsProcessor
from constrained.models import load


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a Hugging Face name or folder; default: the model that ships")
    options = parser.parse_args(arguments)
    loaded = load(options.model)  # AutoModelForCausalLM and AutoTokenizer would do as well
    model, tokenizer = loaded.model, loaded.tokenizer

    vocabulary = Vocabulary.from_tokenizer(tokenizer, size=model.get_output_embeddings().weight.shape[0])
    knowledge = ActionKnowledge.from_lark("hotpotqa")
    compiled = compile_grammar(knowledge.next_action(), vocabulary)
    inputs = tokenizer("Question: who directed Jaws? Action 1: ", return_tensors="pt")
    prompt_length = inputs["input_ids"].shape[1]

    processor = ConstrainedLogitsProcessor(compiled, max_new_tokens=40)
    ids = model.generate(
        **inputs, max_new_tokens=40, do_sample=False, logits_processor=LogitsProcessorList([processor])
    )
    by_processor = tokenizer.decode(ids[0, prompt_length:], skip_special_tokens=True)

    ids = model.generate(
        **inputs, max_new_tokens=40, do_sample=False,
        custom_generate=custom_generate, grammar=compiled, tokenizer=tokenizer,
    )  # fmt: skip
    by_loop = tokenizer.decode(ids[0, prompt_length:], skip_special_tokens=True)
    print("logits processor:", by_processor)
    print("generation loop: ", by_loop)
    return knowledge, by_processor, by_loop


if __name__ == "__main__":
    main()
