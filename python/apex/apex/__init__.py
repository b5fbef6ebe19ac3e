"""apex.amp over torch.amp. The other parts of Apex are fused kernels; importing one says what to use instead."""
__version__ = "0.1+anynpu"
