"""WebShop: its goals, its shop over a catalogue in the published form, its reward (Yao et al., 2022)."""
