"""The one write path: batches of commands become durable facts, in one order."""
