"""The playground: a local page to write, check and run action knowledge."""
