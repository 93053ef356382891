"""The oracle: slow, obvious PyTorch that every kernel is compared with."""
