"""PlanBench: plans that language models wrote, and play under masks, on the same problems."""
