// SPDX-License-Identifier: Apache-2.0

package up

import (
	"errors"
	"os/exec"
	"runtime"
	"time"
)

// errKilled says that a child had to be killed.
var errKilled = errors.New("did not stop in time and was killed")

// child is a program that this process runs and ends.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended; set before done is closed
}

// startChild starts a program in a process group of its own.
//
// The kernel ends the child when its parent dies, and takes "parent" to be the
// thread that started it, which the Go runtime may end at any time. So one
// goroutine starts the child and waits for it on a thread that it keeps: that
// thread lives exactly as long as the child.
func startChild(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = ownGroup()
	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, <-started
}

// stop asks the child to end, kills it when the grace is over, and returns when
// it has gone. It may be called for one that has gone already.
func (c *child) stop(grace time.Duration) error {
	// The id is not given back to the system before Wait has returned, and after
	// that the signal is refused: no stranger can get it.
	_ = c.cmd.Process.Signal(terminate)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
		return nil
	case <-timer.C:
	}
	_ = c.cmd.Process.Kill()
	<-c.done
	return errKilled
}
