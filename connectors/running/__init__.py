"""What a running service leaves on disk, so that its parts and the command line find it."""
