"""Objects of the language Triton in the registry."""

from warpsmith.registry import Extension, Kind

EXTENSION = Extension(
    {
        Kind.BACK_END: {
            "triton": "warpsmith.extensions.triton.backend.backend",
        },
        Kind.COMPILE_REPLY: {
            "triton": "warpsmith.extensions.triton.compile_reply:by_its_binary",
        },
        Kind.COMPILER_VERSION: {
            "triton": "warpsmith.extensions.triton.backend.version:triton_version",
        },
        Kind.SCAFFOLD: {
            "triton": "warpsmith.extensions.triton.scaffold",
        },
    }
)
