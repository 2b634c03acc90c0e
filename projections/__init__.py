"""What readers want to see: pure folds over facts, each with its row type."""
