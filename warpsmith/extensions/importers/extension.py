"""Objects of the importers in the registry."""

from warpsmith.registry import Extension, Kind

EXTENSION = Extension(
    {
        Kind.IMPORTER: {
            "kernel-tuner": "warpsmith.extensions.importers.kernel_tuner_files",
            "flashinfer-bench": "warpsmith.extensions.importers.flashinfer_files",
        },
    }
)
