// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"syscall"
)

// account is who the server runs as: PostgreSQL refuses to be root.
type account struct {
	credential *syscall.Credential
}

func chooseAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	found, err := user.Lookup("postgres")
	if err != nil {
		return account{}, fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres to run it as: %w", err)
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user postgres: %w", err)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user postgres: %w", err)
	}
	return account{credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// own gives the account a file or folder.
func (a account) own(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(path, int(a.credential.Uid), int(a.credential.Gid))
}

// process is a running server.
type process struct {
	command *exec.Cmd
	exited  chan struct{}
	err     error // why it ended; to be read after exited is closed
}

// start runs the command. The kernel's "end with your parent" is about the
// thread that started the child, so that thread waits for the child, too.
func start(command *exec.Cmd, a account) (*process, error) {
	command.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential, Setpgid: true}
	endWithParent(command.SysProcAttr)
	p := &process{command: command, exited: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.exited)
	err := p.command.Start()
	started <- err
	if err == nil {
		p.err = p.command.Wait()
	}
}

func (p *process) signal(s os.Signal) error {
	if err := p.command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal PostgreSQL: %w", err)
	}
	return nil
}

// guard cleans up for a test process that could not. It asks postmaster.pid who
// the server is, and makes sure that the number still means a PostgreSQL.
const guardScript = `
read -r word
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ "$word" != stopped ] && [ -n "$pid" ]; then
	case "$(ps -o comm= -p "$pid" 2>/dev/null)" in *postgres*) kill -QUIT "$pid" ;; esac
	tries=0
	while kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
fi
rm -rf "$1"
`

type guard struct {
	pipe    io.WriteCloser
	command *exec.Cmd
}

func newGuard(folder string) (*guard, error) {
	command := exec.Command("/bin/sh", "-c", guardScript, "guard", folder)
	// A group of its own: what interrupts the tests must not interrupt the guard.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	return &guard{pipe: pipe, command: command}, nil
}

// dismiss tells the guard that the server has stopped; it removes the folder.
func (g *guard) dismiss() error {
	_, err := io.WriteString(g.pipe, "stopped\n")
	return errors.Join(err, g.pipe.Close(), g.command.Wait())
}
