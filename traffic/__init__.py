"""What runs over the fabric: frame formats, workloads and ready-made scenarios."""
