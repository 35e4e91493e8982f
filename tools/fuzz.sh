#!/usr/bin/env bash
# Runs every fuzz target of the tree for the count or time given (default 10000x), one after the other, and prints how many
# inputs each one tried. Ends with the first failure; Go leaves its input under testdata/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
amount=${1:-10000x}
grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do
	dir=$(dirname "$file")
	grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | awk '{print $2}' | sort | while read -r target; do
		printf '%-32s %-28s ' "$dir" "$target"
		if ! out=$(go test -run '^$' -fuzz "^$target\$" -fuzztime "$amount" -fuzzminimizetime 1x "$dir" 2>&1); then
			printf 'FAILED\n%s\n' "$out"
			exit 1
		fi
		printf '%s inputs\n' "$(printf '%s\n' "$out" | grep -oE 'execs: [0-9]+' | tail -n 1 | awk '{print $2}')"
	done
done
