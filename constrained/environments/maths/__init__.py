"""Word problems: GSM8K and SVAMP, solved by computing."""
