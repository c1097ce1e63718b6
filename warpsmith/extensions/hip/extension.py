"""Objects of the language HIP in the registry."""

from warpsmith.registry import Extension, Kind

EXTENSION = Extension(
    {
        Kind.BACK_END: {
            "hip": "warpsmith.extensions.hip.backend",
        },
        Kind.TOOLKIT: {
            "rocm": "warpsmith.extensions.hip.rocm_paths:rocm_roots",
        },
    }
)
