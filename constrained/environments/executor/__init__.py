"""The executor of Lumos's actions (section 2), which are parsed by the grammar that wrote them and never evaluated."""
