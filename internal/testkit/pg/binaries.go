// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNoBinaries says that PostgreSQL is not installed on this machine.
var ErrNoBinaries = errors.New("no PostgreSQL found on this machine")

// BinariesVariable names a folder to look into first.
const BinariesVariable = "WEIR_POSTGRES_BIN"

// findBinaries gives the folder that has initdb and postgres: the one that was
// named, the one on PATH, or the newest of where packages put them.
func findBinaries() (string, error) {
	var folders []string
	if named := os.Getenv(BinariesVariable); named != "" {
		folders = append(folders, named)
	}
	if initdb, err := exec.LookPath("initdb"); err == nil {
		// initdb looks for postgres beside itself, so a link does not do.
		if program, err := filepath.EvalSymlinks(initdb); err == nil {
			folders = append(folders, filepath.Dir(program))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", fmt.Errorf("look for PostgreSQL: %w", err)
		}
		slices.SortFunc(found, func(a, b string) int { return majorVersion(b) - majorVersion(a) })
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		if executable(filepath.Join(folder, "initdb")) && executable(filepath.Join(folder, "postgres")) {
			return folder, nil
		}
	}
	return "", fmt.Errorf("%w; install it with `make deps` or `hack/install-postgres.sh`, or name its folder of binaries in %s",
		ErrNoBinaries, BinariesVariable)
}

// majorVersion reads 15 from /usr/lib/postgresql/15/bin or …/postgresql@15/bin.
func majorVersion(folder string) int {
	name := strings.TrimLeft(filepath.Base(filepath.Dir(folder)), "abcdefghijklmnopqrstuvwxyz@-")
	version, err := strconv.Atoi(name)
	if err != nil {
		return 0
	}
	return version
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
