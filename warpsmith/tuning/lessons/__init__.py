"""What finished jobs taught: which kernels are alike, and what gained or failed on them."""
