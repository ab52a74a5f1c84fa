"""Make the embedded model: an expert plays household games, a small Llama learns from it."""
