"""Mind2Web: tasks on recorded web pages, and the paper's scores (Deng et al., 2023). No data comes with the project."""
