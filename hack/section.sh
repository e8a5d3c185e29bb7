#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command under a title and says how long it took.
set -euo pipefail
title=$1
shift
printf '\n== %s\n' "$title"
start=$SECONDS
code=0
"$@" || code=$?
printf '== %s: %s after %d s\n' "$title" "$([[ $code == 0 ]] && echo passed || echo FAILED)" "$((SECONDS - start))"
exit "$code"
