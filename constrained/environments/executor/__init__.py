"""The executor of Lumos's actions (section 2): they are parsed by the grammar that wrote them, never evaluated as code."""
