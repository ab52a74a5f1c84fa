"""Tables and sentences of README and docs, made from the records; a module for each subject."""
