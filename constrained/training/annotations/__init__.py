"""Convert the solutions of published data sets to Lumos's training conversations, by rule and without a model."""
