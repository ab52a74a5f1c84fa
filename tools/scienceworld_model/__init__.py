"""What trains the model that plays ScienceWorld."""
