"""What editors ask about a `.lark` file while it is written, by the Language Server Protocol."""
