"""Teaching models: expert play, examples, training of the embedded model."""
