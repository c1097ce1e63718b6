"""More recordings of the published collection, in the form that `benchmarks.search.spaces` reads.

`python -m benchmarks.search.hub --hub CLONE --out FOLDER`: CLONE is a Git clone, bare or not, of
AutoTuningAssociation's benchmark_hub (MIT); the files are read at commit 8eeb99e.
"""

import argparse
import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.provenance import record_folder

COMMIT = "8eeb99e"
NEWER = "cachefiles"
OLDER = "currently_unused/cachefiles/KernelTuner data"
RESTRICTIONS: dict[str, tuple[str, ...]] = {
    "convolution": (
        "block_size_x*block_size_y>=64",
        "block_size_x*block_size_y<=1024",
        "tile_size_x*tile_size_y<30",
    ),
    "convolution_milo": (
        "use_padding==0 or block_size_x % 32 != 0",
        "block_size_x*block_size_y<=1024",
        "use_padding==0 or use_shmem != 0",
        "use_shmem == 0 or (((block_size_x*tile_size_x+(filter_width-1)))"
        "*((block_size_y*tile_size_y+(filter_height-1)))) < 12*1024",
    ),
    "dedispersion_milo": (
        "32 <= block_size_x * block_size_y <= 1024",
        "tile_size_x > 1 or tile_stride_x == 0",
        "tile_size_y > 1 or tile_stride_y == 0",
    ),
    "gemm": (
        "KWG % KWI == 0",
        "MWG % (MDIMC * VWM) == 0",
        "NWG % (NDIMC * VWN) == 0",
        "MWG % (MDIMA * VWM) == 0",
        "NWG % (NDIMB * VWN) == 0",
        "KWG % ((MDIMC * NDIMC)/MDIMA) == 0",
        "KWG % ((MDIMC * NDIMC)/NDIMB) == 0",
    ),
    "pnpoly": (),
}
"""As in the kernels' definitions of the collection."""
RECORDINGS: dict[str, tuple[str, ...]] = {
    f"{OLDER}/convolution": ("RTX_Titan", "RTX_3060_laptop"),
    f"{NEWER}/convolution_milo": ("A100", "MI250X", "W6600"),
    f"{NEWER}/dedispersion_milo": ("A100", "A6000", "W6600", "W7800"),
    f"{OLDER}/gemm": ("RTX_Titan",),
    f"{OLDER}/pnpoly": ("RTX_Titan", "RTX_2080_Ti", "RTX_3060_laptop"),
}
"""Devices by folder; gemm on the 3060 is a part of its space only, hotspot and gemm_milo lie elsewhere."""
KEPT = ("time", "compile_time", "verification_time", "benchmark_time")


def converted(recorded: dict[str, Any], restrictions: tuple[str, ...]) -> dict[str, Any]:
    """A cache of Kernel Tuner, without the single timings."""
    params: dict[str, list[Any]] = recorded["tune_params"]
    cache = {
        key: {n: entry[n] for n in (*params, *KEPT) if n in entry} for key, entry in recorded["cache"].items()
    }
    return {"tune_params": params, "restrictions": list(restrictions), "cache": cache}


def main() -> None:
    """Convert every recording."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.hub", description=__doc__)
    parser.add_argument("--hub", type=Path, required=True, help="the clone")
    parser.add_argument("--out", type=record_folder, required=True, help="folder for NAME-DEVICE.json.gz")
    options = parser.parse_args()

    def read(path: str) -> dict[str, Any]:
        command = ["git", "-C", str(options.hub), "show", f"{COMMIT}:{path}.json.gz"]
        loaded: dict[str, Any] = json.loads(
            gzip.decompress(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        )
        return loaded

    def write(name: str, space: dict[str, Any]) -> None:
        with gzip.open(options.out / f"{name}.json.gz", "wt") as stream:
            json.dump(space, stream)
        print(name, len(space["cache"]), flush=True)

    for folder, devices in RECORDINGS.items():
        kernel = folder.rsplit("/", 1)[-1]
        for device in devices:
            write(f"{kernel}-{device}", converted(read(f"{folder}/{device}"), RESTRICTIONS[kernel]))


if __name__ == "__main__":
    main()
