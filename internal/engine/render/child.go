// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// ChildArgument is the first argument of the processes that Child starts. A
// program that uses Child calls ChildMain at its very beginning.
const ChildArgument = "weir-render-child"

// ChildLimits are those of one process. Zero is the default that is named.
type ChildLimits struct {
	// Timeout from start to end: 60 seconds.
	Timeout time.Duration
	// CPU time: 30 seconds.
	CPU time.Duration
	// Memory of what is rendered: 512 MiB.
	Memory int64
}

func (l ChildLimits) withDefaults() ChildLimits {
	if l.Timeout <= 0 {
		l.Timeout = time.Minute
	}
	if l.CPU <= 0 {
		l.CPU = 30 * time.Second
	}
	l.Memory = orElse(l.Memory, 512<<20)
	return l
}

// Child is the Renderer that renders each request in a process of its own: this
// program, started again. The process has an empty environment, an empty folder,
// limits that it sets for itself before it reads the first byte of the request,
// and, where the kernel lets us, user and network namespaces of its own, in which
// there is not even a loopback device that is up. It is killed, with all of its
// group, when its time is up or nobody waits any more.
type Child struct {
	// Program is what is started; empty is this program.
	Program string
	// Folder is where the processes' own folders are made; empty is the system's.
	Folder string
	Limits ChildLimits
	// RequireIsolation fails where there cannot be namespaces. Otherwise the
	// processes run without, and Log says so once.
	RequireIsolation bool
	Log              *slog.Logger

	warned sync.Once
}

// ErrNoIsolation says that the kernel does not give us namespaces.
var ErrNoIsolation = errors.New("the kernel allows no user namespaces, so rendering cannot be kept from the network")

// Exit codes with which a child says what it ran out of.
const (
	exitMemory = 97
	exitCPU    = 98
	// exitFatal is the exit code of Go's runtime, for a program that cannot get
	// memory, or whose stack is too deep.
	exitFatal = 2
)

// Render implements Renderer.
func (c *Child) Render(ctx context.Context, request *Request) (*Result, error) {
	if err := request.Load(ctx); err != nil {
		return nil, err
	}
	limits := c.Limits.withDefaults()
	asked := *request
	asked.Limits = request.Limits.withDefaults()
	input, err := json.Marshal(&asked)
	if err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	folder, err := os.MkdirTemp(c.Folder, "weir-render-")
	if err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	own, cancel := context.WithTimeout(ctx, limits.Timeout)
	defer cancel()
	output, err := c.run(own, folder, input, limits, maxAnswer(asked.Limits))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		return nil, verdict(own, err, limits)
	}
	var said answer
	if err := json.Unmarshal(output, &said); err != nil {
		return nil, fault(ErrCrashed, "", "try again", "the process that renders did not answer")
	}
	return said.result(asked.Limits)
}

// maxAnswer leaves room for what the answer has beside manifests, and for how
// JSON writes what YAML says shorter.
func maxAnswer(l Limits) int64 { return 2*l.OutputBytes + 8<<20 }

// verdict says why there is no answer.
func verdict(ctx context.Context, err error, limits ChildLimits) error {
	const smaller = "make it smaller, or look for a template that does not end"
	var exit *exec.ExitError
	switch {
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrNoIsolation):
		return err
	case ctx.Err() != nil:
		return fault(ErrTime, "", smaller, "rendering took longer than %s", limits.Timeout)
	case !errors.As(err, &exit):
		return fmt.Errorf("render: %w", err)
	}
	status, _ := exit.Sys().(syscall.WaitStatus)
	switch {
	case exit.ExitCode() == exitCPU, status.Signaled() && status.Signal() == syscall.SIGXCPU, status.Signaled() && status.Signal() == syscall.SIGKILL && spent(exit) >= limits.CPU:
		return fault(ErrTime, "", smaller, "rendering took more than %s of CPU time", limits.CPU)
	case exit.ExitCode() == exitMemory, status.Signaled() && status.Signal() == syscall.SIGKILL:
		return fault(ErrMemory, "", smaller, "rendering needs more than %d MiB of memory", limits.Memory>>20)
	case exit.ExitCode() == exitFatal:
		return fault(ErrMemory, "", smaller, "rendering asks for far more than %d MiB of memory at once, or includes itself without end", limits.Memory>>20)
	}
	return fault(ErrCrashed, "", "try again", "the process that renders ended without an answer")
}

func spent(exit *exec.ExitError) time.Duration { return exit.UserTime() + exit.SystemTime() }

// run starts a child, with namespaces if that is possible.
func (c *Child) run(ctx context.Context, folder string, input []byte, limits ChildLimits, most int64) ([]byte, error) {
	output, err := c.start(ctx, folder, input, limits, most, true)
	if !errors.Is(err, errNotStarted) || !isRefusal(err) || ctx.Err() != nil {
		return output, err
	}
	if c.RequireIsolation {
		return nil, errors.Join(ErrNoIsolation, err)
	}
	c.warned.Do(func() {
		if c.Log != nil {
			c.Log.WarnContext(ctx, "rendering is not kept from the network: the kernel allows no user namespaces", "error", err)
		}
	})
	return c.start(ctx, folder, input, limits, most, false)
}

// isRefusal tells that there may be no namespaces, or no more of them, from a
// program that cannot be started at all.
func isRefusal(err error) bool {
	for _, no := range []error{syscall.EPERM, syscall.EINVAL, syscall.ENOSPC, syscall.ENOSYS, syscall.EUSERS} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

var errNotStarted = errors.New("process was not started")

func (c *Child) start(ctx context.Context, folder string, input []byte, limits ChildLimits, most int64, isolated bool) ([]byte, error) {
	// The kernel kills the child when the thread ends that started it, which a
	// goroutine's need not be this one's.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	program := c.Program
	if program == "" {
		program = "/proc/self/exe"
	}
	cmd := exec.CommandContext(ctx, program, ChildArgument)
	cmd.Dir = folder
	cmd.Env = []string{
		"HOME=" + folder, "TMPDIR=" + folder, "GOMAXPROCS=2", "GOTRACEBACK=none",
		childMemory + "=" + strconv.FormatInt(limits.Memory, 10),
		childCPU + "=" + strconv.FormatInt(int64(max(limits.CPU, time.Second)/time.Second), 10),
		childInput + "=" + strconv.Itoa(len(input)),
	}
	if isolated {
		cmd.Env = append(cmd.Env, childIsolated+"=1")
	}
	output := &bounded{left: most, full: func() { cancel(errTooLong) }}
	cmd.Stdin, cmd.Stdout = bytes.NewReader(input), output
	cmd.SysProcAttr = attributes(isolated)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(errNotStarted, err)
	}
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(context.Cause(ctx), errTooLong) {
		return nil, fault(ErrTooLarge, "", "split it into several applications", "the manifests have more bytes than allowed")
	}
	return output.buffer.Bytes(), err
}

var errTooLong = errors.New("answer is too long")

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
		return 0, errTooLong
	}
	return b.buffer.Write(p)
}

// attributes puts the child into a group of its own that ends with us, and, where
// asked, into namespaces in which it is nobody and has no network.
func attributes(isolated bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if isolated {
		const nobody = 65534
		attr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getgid(), Size: 1}}
	}
	return attr
}
