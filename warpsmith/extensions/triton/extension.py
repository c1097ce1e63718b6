"""Objects of the language Triton in the registry."""

from warpsmith.registry import Extension, Kind

EXTENSION = Extension(
    {
        Kind.LANGUAGE: {"triton": "warpsmith.extensions.triton.language:TRITON"},
        Kind.SCAFFOLD: {
            "triton": "warpsmith.extensions.triton.scaffold",
        },
    }
)
