#!/bin/sh
# Makes .venv-bench, where Kernel Tuner runs: its own environment, so that ours keeps its versions.
set -eu
cd "$(dirname "$0")/../.."
python="${PYTHON:-python3}"
environment=.venv-bench
stamp="$environment/.installed"
if [ -e "$stamp" ] && [ ! requirements/bench.txt -nt "$stamp" ]; then exit 0; fi
"$python" -m venv "$environment"
printf '*\n' > "$environment/.gitignore"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.txt
touch "$stamp"
