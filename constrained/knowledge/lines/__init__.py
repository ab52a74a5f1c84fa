"""The `//:` lines of `.lark` files: one grammar and one form of conditions and values, for worlds and for policies."""
