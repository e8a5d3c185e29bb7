// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	empty := t.TempDir()
	file := filepath.Join(empty, "missing", "folder")
	for _, tc := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{args: "", code: 2, stderr: "localkube up"},
		{args: "help", stdout: "localkube up"},
		{args: "--help", stdout: "localkube status"},
		{args: "version", stdout: "v"},
		{args: "fly", code: 2, stderr: `no command "fly"`},
		{args: "up", code: 2, stderr: "up needs --dir"},
		{args: "up --help", stderr: "-unsafe-no-fsync"},
		{args: "up --dir x y", code: 2, stderr: `takes no argument, but got "y"`},
		{args: "up --dir x --nodes -1", code: 2, stderr: "has to be 0 to 200"},
		{args: "up --dir x --nodes many", code: 2, stderr: "invalid value"},
		{args: "up --wrong", code: 2, stderr: "not defined"},
		{args: "up --dir /dev/null/x", code: 1, stderr: "not a directory"},
		{args: "status --dir " + empty, code: 1, stderr: "not running"},
		{args: "down --dir " + empty, stdout: "nothing runs"},
		{args: "down --dir " + file, stdout: "nothing runs"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := Run(t.Context(), strings.Fields(tc.args), &stdout, &stderr)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if !strings.Contains(stdout.String(), tc.stdout) || tc.stdout == "" && stdout.Len() > 0 {
				t.Errorf("stdout %q, want %q", stdout.String(), tc.stdout)
			}
			if !strings.Contains(stderr.String(), tc.stderr) || tc.stderr == "" && stderr.Len() > 0 {
				t.Errorf("stderr %q, want %q", stderr.String(), tc.stderr)
			}
		})
	}
}
