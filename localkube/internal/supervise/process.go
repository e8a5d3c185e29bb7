// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// ErrKilled says that a child did not end within its grace and was killed.
var ErrKilled = errors.New("did not stop in time and was killed")

// Spec describes a child before it is started.
type Spec struct {
	// Name is what the child is called in messages, and its argv[0].
	Name string
	// Path is the program file.
	Path string
	Args []string
	Env  []string
	Dir  string
	// LogFile receives stdout and stderr.
	LogFile string
}

// Process is a started child.
type Process struct {
	spec Spec
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended; set before done is closed
}

// Start starts the child.
func Start(spec Spec) (*Process, error) {
	log, err := openLog(spec.LogFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	// The child has its own copy of the descriptor once it is started.
	defer log.Close()

	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Args[0] = spec.Name
	cmd.Env = spec.Env
	cmd.Dir = spec.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()

	p := &Process{spec: spec, cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	return p, nil
}

// run starts the child and waits for it, on one thread (see the package
// documentation). The thread is given back when the child has gone.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// Name is the name from the Spec.
func (p *Process) Name() string { return p.spec.Name }

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// LogFile is where the child's output goes.
func (p *Process) LogFile() string { return p.spec.LogFile }

// Done is closed when the child has gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err tells how the child ended, nil for exit code 0. Only valid after Done.
func (p *Process) Err() error { return p.err }

// Stop ends the child: SIGTERM, then SIGKILL when the grace is over. It
// returns when the child has gone; its exit code does not matter here, since
// it was asked to go. Stop of a child that has gone does nothing.
func (p *Process) Stop(grace time.Duration) error {
	p.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	p.signal(os.Kill)
	<-p.done
	return fmt.Errorf("%s %w", p.spec.Name, ErrKilled)
}

// signal cannot reach a stranger: the process id is not given back to the
// system before Wait has returned, and after that os.Process refuses. The only
// error is therefore "already finished".
func (p *Process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }
