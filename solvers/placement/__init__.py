"""The placer's index: which GPUs are free throughout a span, in microseconds and exactly."""
