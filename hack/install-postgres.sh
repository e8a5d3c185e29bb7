#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes PostgreSQL's programs available for tests and benchmarks, which start
# servers of their own from them. Does nothing where they are already there, and
# never starts a server for the whole machine.
set -eu

say() { printf 'postgres: %s\n' "$*"; }

found() {
	if [ -n "${WEIR_POSTGRES_BIN:-}" ] && [ -x "$WEIR_POSTGRES_BIN/initdb" ]; then
		echo "$WEIR_POSTGRES_BIN"
		return 0
	fi
	if command -v initdb >/dev/null 2>&1 && command -v postgres >/dev/null 2>&1; then
		dirname "$(command -v initdb)"
		return 0
	fi
	for folder in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin \
		/opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
		if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then
			echo "$folder"
			return 0
		fi
	done
	return 1
}

if folder=$(found); then
	say "already installed in $folder"
	exit 0
fi

case "$(uname -s)" in
Darwin)
	say 'not installed. Run: brew install postgresql@17' >&2
	exit 1
	;;
esac

if ! command -v apt-get >/dev/null 2>&1; then
	say "not installed, and this machine has no apt-get. Install your system's PostgreSQL server package (13 or later)," >&2
	say 'or name its folder of programs: export WEIR_POSTGRES_BIN=/path/to/bin' >&2
	exit 1
fi

as_root=''
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null 2>&1; then
		say 'not installed. Run as root: apt-get install postgresql' >&2
		exit 1
	fi
	as_root='sudo'
fi

# Debian's package makes and starts a cluster for the whole machine unless told
# not to before it is installed.
say '1/3 telling the package not to start a server of its own'
$as_root mkdir -p /etc/postgresql-common/createcluster.d
printf 'create_main_cluster = false\n' |
	$as_root tee /etc/postgresql-common/createcluster.d/weir.conf >/dev/null

say '2/3 reading the list of packages'
$as_root apt-get update -qq

say '3/3 installing postgresql (about 60 MB)'
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql

folder=$(found) || {
	say 'the package is installed, but its programs were not found' >&2
	exit 1
}
say "installed in $folder"
