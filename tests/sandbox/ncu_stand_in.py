"""An executable that stands in for Nsight Compute: takes its options, runs the child, writes its CSV.

The text of its logs was written by hand after NVIDIA's documentation, by no run.
"""

import sys
from pathlib import Path

_SCRIPT = """#!{python} -I
import json, pathlib, subprocess, sys, time
mode, calls = {mode!r}, pathlib.Path({calls!r})
words = sys.argv[1:]
taken, flags = {{}}, []
while words[0].startswith("--"):
    name = words.pop(0)
    if name in ("--csv",):
        flags.append(name)
    else:
        taken[name] = words.pop(0)
with calls.open("a") as file:
    file.write(json.dumps([flags, taken]) + "\\n")
log = pathlib.Path(taken["--log-file"])
if mode == "hangs":
    time.sleep(60)
refusal = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
    "Counters on the target device 0. For instructions on enabling permissions and to get more information "
    "see https://developer.nvidia.com/ERR_NVGPUCTRPERM\\n"
)
if mode == "ends":
    log.write_text("==ERROR== Cuda driver is not compatible with Nsight Compute.\\n")
    sys.exit(1)
code = subprocess.run(words).returncode
entry = taken["--kernel-name"]
head = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size"]
head += ["Grid Size", "Device", "CC"]
row = ["0", "4242", "python3.12", "127.0.0.1", entry, "1", "7", "(64, 1, 1)", "(16, 1, 1)", "0", "9.0"]
known = {{
    "dram__bytes.sum": ("byte", "1,179,648"),
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "85.27"),
    "lts__t_sector_hit_rate.pct": ("%", "33.06"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "21.5"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "n/a"),
}}
metrics = sorted(m for m in taken["--metrics"].split(",") if m in known)
line = lambda cells: ",".join('"' + c + '"' for c in cells) + "\\n"
text = "==PROF== Connected to process 4242 (/usr/bin/python3.12)\\n"
if mode == "counts":
    text += '==PROF== Profiling "' + entry + '" - 0: 0%....50%....100% - 3 passes\\n'
if mode == "refused":
    text += refusal
text += "==PROF== Disconnected from process 4242\\n"
if mode == "counts":
    text += line(head + metrics)
    text += line([""] * len(head) + [known[m][0] for m in metrics])
    text += line(row + [known[m][1] for m in metrics])
log.write_text(text)
sys.exit(code)
"""


def ncu(folder: Path, mode: str) -> Path:
    """The program; it appends its options to `calls` beside it, a line of JSON a call.

    Args:
        mode: `counts`, `refused` (no permission), `ends` (before the child begins), or `hangs`.
    """
    program = folder / "ncu"
    text = _SCRIPT.format(python=sys.executable, mode=mode, calls=str(folder / "calls"))
    program.write_text(text)
    program.chmod(0o755)
    return program
