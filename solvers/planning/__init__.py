"""Planning a whole instance: bound and prices, sweep placement, improvement, certificate, check."""
