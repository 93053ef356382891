"""The kernels and the headless host that runs them: numpy and wgpu, nothing else."""
