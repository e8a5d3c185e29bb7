#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds one program and, where that takes long, says how far it is.
#
#   hack/build.sh OUTPUT MODULE-FOLDER PACKAGE [flags for go build]
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
output=$1 folder=$2 package=$3
shift 3
mkdir -p "$(dirname "$root/$output")"
log=$(mktemp)
build=
# A job in the background does not hear Ctrl-C by itself.
trap 'rm -f "$log"; [[ -z $build ]] || kill "$build" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

cd "$root/$folder"
start=$SECONDS
if [[ $output == bin/localkube ]]; then
	echo "building $output, a whole Kubernetes control plane: about 10 minutes on 2 cores the first time"
fi
# -v names each package as it is compiled; what is cached is not named.
go build -v "$@" -o "$root/$output" "$package" 2>"$log" &
build=$!
total=
shown=$SECONDS
while kill -0 "$build" 2>/dev/null; do
	sleep 0.5
	if ((SECONDS - shown >= 10)); then
		shown=$SECONDS
		total=${total:-$(go list -deps "$package" 2>/dev/null | wc -l)}
		printf '  %s: %d of at most %d packages compiled, %d modules downloaded, %d s\n' "$output" \
			"$(grep -vc '^go: ' "$log" || true)" "$total" "$(grep -c '^go: downloading' "$log" || true)" "$((SECONDS - start))"
	fi
done
if ! wait "$build"; then
	grep -E '^#|\.go:[0-9]|^go: ' "$log" | tail -n 30 >&2 || tail -n 30 "$log" >&2
	echo "building $output failed" >&2
	build=
	exit 1
fi
build=
printf 'built %s in %d s\n' "$output" "$((SECONDS - start))"
