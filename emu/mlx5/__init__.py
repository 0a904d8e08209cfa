"""What an mlx5 NIC and its driver write for each other: WQEs, doorbells, CQEs, by struct (mlx5dv.h of rdma-core)."""
