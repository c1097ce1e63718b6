"""Objects of the scaffold in the registry."""

from warpsmith.registry import Extension, Kind

EXTENSION = Extension(
    {
        Kind.SOURCE_CHECK: {
            "signature": "warpsmith.extensions.scaffold.source_checks.signature:signature_findings",
            "launch": "warpsmith.extensions.scaffold.source_checks.launch:launch_findings",
        },
        Kind.LAUNCH_CHECK: {
            "idle threads": "warpsmith.extensions.scaffold.source_checks.idle_threads:idle_threads",
        },
        Kind.DRAFT: {
            "scaffold": "warpsmith.extensions.scaffold.command.init:drafted",
        },
        Kind.COMMANDS: {
            "init": "warpsmith.extensions.scaffold.command.registration:add",
        },
    }
)
