"""Training: fine-tuning on texts, self-learning on an agent's own play, and the data for both."""
