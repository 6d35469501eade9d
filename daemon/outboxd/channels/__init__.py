"""How actors talk: one closed message union, in memory within a process, framed between two."""
