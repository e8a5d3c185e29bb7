#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lists the packages of the root module that have tests, without those given.
set -euo pipefail
cd "$(dirname "$0")/.."
with_tests() { go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "$@" | sort; }
comm -23 <(with_tests ./...) <(with_tests "$@")
