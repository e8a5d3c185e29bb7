// SPDX-License-Identifier: Apache-2.0

package gitserve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoGit says that the git program, or its part that serves HTTP, is missing.
var ErrNoGit = errors.New("git is not installed, or lacks its http-backend; install your system's package \"git\"")

// Check says whether this machine has what the package needs.
func Check(ctx context.Context) error {
	_, err := backend(ctx)
	return err
}

// backend finds the program that speaks Git's protocol over CGI.
func backend(ctx context.Context) (string, error) {
	folder, err := run(ctx, "", nil, "--exec-path")
	if err != nil {
		return "", err
	}
	program := filepath.Join(folder, "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoGit, err)
	}
	return program, nil
}

// run runs git in a folder and returns what it printed.
func run(ctx context.Context, dir string, stdin io.Reader, args ...string) (string, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoGit, err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(environment(), "PATH="+os.Getenv("PATH"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// environment makes git behave the same on every machine.
func environment() []string {
	return []string{
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C",
	}
}
