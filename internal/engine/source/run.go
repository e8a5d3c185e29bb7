// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command is one run of git.
type Command struct {
	// Args follow the name of the program; the first is git's subcommand.
	Args []string
	// Env is the whole environment.
	Env   []string
	Stdin []byte
	// MaxOutput bytes may be printed.
	MaxOutput int64
}

// Runner runs git. The error of a run whose output was too long is errOutput.
type Runner interface {
	Run(ctx context.Context, command Command) ([]byte, error)
}

var errOutput = errors.New("printed more than it may")

// killed is how long a process may take to die once it was killed.
const killed = 5 * time.Second

// program is the Runner that starts processes.
type program struct {
	path   string
	memory int64
}

func findProgram(memory int64) (*program, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("source: git is not installed: %w", err)
	}
	return &program{path: path, memory: memory}, nil
}

// Run starts git in a process group of its own and ends the group with it: git's
// helpers (git-remote-https, index-pack, ssh) do not notice by themselves that
// nobody waits for them any more. What goes to the error output is thrown away;
// it may hold text from servers.
func (p *program) Run(ctx context.Context, command Command) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	output := &bounded{left: command.MaxOutput, full: func() { cancel(errOutput) }}
	cmd := exec.CommandContext(ctx, p.path, command.Args...)
	cmd.Dir, cmd.Env = "/", command.Env
	cmd.Stdin, cmd.Stdout = bytes.NewReader(command.Stdin), output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killed
	if err := cmd.Start(); err != nil {
		return nil, &ProcessError{Verb: command.Args[0], cause: err}
	}
	// The process has at most begun to load its libraries: what it starts later
	// inherits the limit. Should the process be gone already, there is nothing to
	// limit.
	_ = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: uint64(p.memory), Max: uint64(p.memory)}, nil)
	err := cmd.Wait()
	// What is left of the group. Its number is not given to another process while
	// a member lives; without one the call fails, which is as well.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, &ProcessError{Verb: command.Args[0], cause: err}
	}
	return output.buffer.Bytes(), nil
}

// bounded keeps output up to a limit.
type bounded struct {
	buffer bytes.Buffer
	left   int64
	full   func()
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		b.full()
		return 0, errOutput
	}
	return b.buffer.Write(p)
}
