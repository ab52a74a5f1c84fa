"""Solutions of published data sets turned into Lumos's training conversations by rule, without a model."""
