"""Not here: importing it says why. An ImportError, so that programs with a fallback take it."""
raise ImportError("apex.optimizers: the fused optimizers are kernels that are not part of this package. Use torch.optim (torch_npu's are in torch_npu.optim), whose steps are fused where foreach=True or fused=True is taken.")
