"""Objects of the language HIP in the registry."""

from warpsmith.registry import Extension, Kind

EXTENSION = Extension(
    {
        Kind.LANGUAGE: {"hip": "warpsmith.extensions.hip.language:HIP"},
    }
)
