// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// process is a program that this one started.
type process struct {
	name    string
	command *exec.Cmd
	log     string
	exited  chan struct{}
	err     error // how it ended; to be read after exited is closed
}

// launch starts a program whose output goes to a log file. The kernel's "end
// with your parent" is about the thread that started the child, so that thread is
// kept and waits for the child.
func launch(name, log, path string, args ...string) (*process, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	p := &process{name: name, command: exec.Command(absolute, args...), log: log, exited: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = out, out
	// A group of its own: Ctrl-C is for this process, which then ends the others in
	// their order.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(p.command.SysProcAttr)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		defer func() { _ = out.Close() }()
		err := p.command.Start()
		started <- err
		if err == nil {
			p.err = p.command.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

func (p *process) pid() int { return p.command.Process.Pid }

// ended says why a process that should run does not.
func (p *process) ended() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s has ended (%w); the end of its log:\n%s", p.name, orExit(p.err), tail(p.log))
	default:
		return nil
	}
}

var errExit = errors.New("exit status 0")

func orExit(err error) error {
	if err == nil {
		return errExit
	}
	return err
}

// stop asks politely, and after a while ends it.
func (p *process) stop(patience time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s did not stop within %s and was killed", p.name, patience), p.kill())
	}
}

// kill ends it as a crash would.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

func (p *process) signal(s syscall.Signal) error {
	if err := p.command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// tail gives the end of a log file.
func tail(path string) string {
	const enough = 2000
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-enough):])
}
