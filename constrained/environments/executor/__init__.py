"""The executor of Lumos's actions (section 2): parsed by the grammar that wrote them, never evaluated."""
