"""What `make bench` measures: counts first, then ratios taken in one run."""
