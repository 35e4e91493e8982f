#!/usr/bin/env bash
# Runs every fuzz target of the tree for the seconds given (default 5) at least, one after the other, and prints how many
# inputs each one tried. Ends with the first failure; Go leaves its input under testdata/fuzz. The time is made of
# batches with a count: with a time of its own, Go's engine now and then reports its deadline as a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-5}
grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do
	dir=$(dirname "$file")
	grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | awk '{print $2}' | sort | while read -r target; do
		printf '%-32s %-28s ' "$dir" "$target"
		begun=$SECONDS
		inputs=0
		while [ "$inputs" -eq 0 ] || [ $((SECONDS - begun)) -lt "$seconds" ]; do
			if ! out=$(go test -run '^$' -fuzz "^$target\$" -fuzztime 10000x -fuzzminimizetime 1x "$dir" 2>&1); then
				printf 'FAILED\n%s\n' "$out"
				exit 1
			fi
			inputs=$((inputs + $(printf '%s\n' "$out" | grep -oE 'execs: [0-9]+' | tail -n 1 | awk '{print $2}')))
		done
		printf '%s inputs\n' "$inputs"
	done
done
