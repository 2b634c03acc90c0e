"""The command as a module."""

from connectors.cli.app import main

main()
