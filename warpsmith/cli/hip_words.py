"""Sentences of the command line on HIP."""

HIP_ON_NVIDIA = "HIP jobs run on NVIDIA devices through headers of warpsmith's own"
NOT_ON_AMD = "warpsmith has not run on AMD hardware"
