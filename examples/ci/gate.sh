#!/bin/sh
# A gate in any other CI server, or by hand: gate.sh BASE [HEAD], in a clone of your repository that has all commits.
# ENGINE says where in it the manifest of your job lies. Ends with 0 where the job may go on.
set -u
base=${1:?which commit, branch or engine is compared with}
head=${2:-HEAD}
code=0
"${STREAMGAUGE:-streamgauge}" gate --base "$base" --head "$head" --engine "${ENGINE:-jobs/ad-counts}" --out gate || code=$?
case $code in
    1) echo "Red: the head counts wrong, or is slower. The newest folder in gate/ holds why." >&2 ;;
    2) echo "Red: there is a mistake in what was asked, and the sentence above names it." >&2 ;;
    3) echo "A warning: it can't be told. The sentence above says what it would take." >&2 && code=0 ;;
    4) echo "Red: the gate or its machine broke, which says nothing of the head." >&2 ;;
esac
exit "$code"
