"""`constrained serve`: an OpenAI-compatible server whose model's tool calls obey the knowledge."""
