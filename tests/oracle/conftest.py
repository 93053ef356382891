"""Settings of the oracle's tests."""

import torch

# Tiny matrices on shared cores: a second thread costs more than it brings, up to twenty times when cores are busy.
torch.set_num_threads(1)
