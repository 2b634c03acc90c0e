"""Speed, as ratios to raw limits that are taken in the same run."""
