"""Objects of the exports in the registry."""

from warpsmith.registry import Extension, Kind

EXTENSION = Extension(
    {
        Kind.EXPORT: {
            "c": "warpsmith.extensions.exports.formats:c",
            "cpp": "warpsmith.extensions.exports.formats:cpp",
            "torch": "warpsmith.extensions.exports.formats:torch",
            "tvm-ffi": "warpsmith.extensions.exports.formats:tvm_ffi",
            "hf-kernel": "warpsmith.extensions.exports.formats:hf_kernel",
            "sglang": "warpsmith.extensions.exports.formats:sglang",
            "flashinfer-bench": "warpsmith.extensions.exports.formats:flashinfer_bench",
            "t4": "warpsmith.extensions.exports.formats:t4",
            "vllm-config": "warpsmith.extensions.exports.formats:vllm_config",
            "sglang-config": "warpsmith.extensions.exports.formats:sglang_config",
            "hf-config": "warpsmith.extensions.exports.formats:hf_config",
        },
        Kind.COMMANDS: {"export": "warpsmith.extensions.exports.commands.registration:add"},
    }
)
