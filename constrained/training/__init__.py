"""Training: fine-tuning on texts, self-learning from an agent's own play, and the data for both."""
