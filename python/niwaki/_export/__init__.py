"""Policies as plain PyTorch: files that `niwaki.policy` copies as they are."""
