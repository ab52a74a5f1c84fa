"""What trains the embedded chooser's weights: `python -m tools.embedded_chooser.train`."""
