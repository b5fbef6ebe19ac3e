"""Not here: importing it says why. An ImportError, so that programs with a fallback take it."""
raise ImportError("apex.parallel: DistributedDataParallel and SyncBatchNorm of Apex are older than torch's. Use torch.nn.parallel.DistributedDataParallel and torch.nn.SyncBatchNorm.convert_sync_batchnorm.")
