"""What moves and what acts on it: bodies, fields, problems, and what is observed along the motion."""
