"""Runs as the first process of a code-interpreter session and owns everything that the session does."""
