"""Keys of the words in the log, and the directory of who wrote them: what can be forgotten."""
