#!/bin/sh
# A gate in any other CI server, or by hand: gate.sh BASE [HEAD], in a clone of your repository that has all commits.
# ENGINE is the folder of your job's manifest in it. Exits with 0 if the CI job may pass. docs/ci/shell.md explains it.
set -u
base=${1:?the commit, branch or engine to compare with}
head=${2:-HEAD}
code=0
"${STREAMGAUGE:-streamgauge}" gate --base "$base" --head "$head" --engine "${ENGINE:-jobs/ad-counts}" --out gate || code=$?
case $code in
    1) echo "Failed: the head counts wrong, or costs more. Open report.html in the newest folder of gate/." >&2 ;;
    2) echo "Failed: usage error. The sentence above names it." >&2 ;;
    3) echo "Warning: INCONCLUSIVE. The sentence above says what would help." >&2 && code=0 ;;
    4) echo "Failed: streamgauge or its machine failed. Nothing is known of the head." >&2 ;;
esac
exit "$code"
