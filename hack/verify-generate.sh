#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fails if generating changes anything: what is committed must be what the
# types say.
set -euo pipefail
cd "$(dirname "$0")/.."
sums() { find api config/crd -type f \( -name 'zz_generated*' -o -name '*.yaml' \) -print0 | sort -z | xargs -0 sha256sum; }
before=$(sums)
make --no-print-directory generate
if ! diff <(echo "$before") <(sums); then
	echo "generated files were not up to date: run 'make generate' and commit the result" >&2
	exit 1
fi
echo "generated files are up to date"
