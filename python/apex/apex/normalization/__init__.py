"""Not here: importing it says why. An ImportError, so that programs with a fallback take it."""
raise ImportError("apex.normalization: the fused normalisations are kernels that are not part of this package. Use torch.nn.LayerNorm and torch.nn.RMSNorm, which run as one kernel.")
