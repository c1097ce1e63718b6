"""CUDA sources and jobs as HIP, within a stated subset. Pure: nothing here compiles or runs."""
