"""The Berkeley Function Calling Leaderboard (Patil et al., 2025), version 4: its single-turn categories."""
