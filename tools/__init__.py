"""Programs that make what the project ships; they are run from a checkout."""
