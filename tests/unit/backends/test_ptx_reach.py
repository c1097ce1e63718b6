"""What of a PTX text its kernels reach."""

from warpsmith.backends.binaries.ptx_reach import reached

PTX = """//
.version 9.0
.target sm_90
.address_size 64

.global .align 1 .b8 used[4] = {104, 105, 0, 0};
.global .align 1 .b8 by_function[4];
.global .align 1 .b8 idle[4] = {1, 2, 3, 4};
.global .align 8 .u64 pointer = generic(pointed);
.global .align 4 .b8 pointed[4];
.func  (.param .b32 func_retval0) called(
	.param .b64 called_param_0
)
{
	mov.u64 %rd1, by_function;
	ret;
}
.visible .func idle_function()
{
	mov.u64 %rd1, idle;
	ret;
}
.visible .entry kernel(
	.param .u64 kernel_param_0
)
.maxntid 256
{
	{
	call.uni (retval0), called, (param0);
	}
	mov.u64 %rd2, used;
	ld.global.u64 %rd3, [pointer];
	ret;
}
"""


def test_what_no_kernel_names_is_left_out() -> None:
    found = reached(PTX)
    for name in (
        "kernel(",
        "called(",
        "used[4]",
        "by_function[4]",
        "pointer =",
        "pointed[4]",
        ".version 9.0",
    ):
        assert name in found, name
    assert "idle" not in found


def test_a_text_without_kernels_keeps_its_head_alone() -> None:
    head, _, _ = PTX.partition(".global")
    assert reached(head).split() == head.split()
    assert reached("") == ""
