// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The environment of a child, besides where its folder is.
const (
	childMemory   = "WEIR_RENDER_MEMORY"
	childCPU      = "WEIR_RENDER_CPU"
	childInput    = "WEIR_RENDER_INPUT"
	childIsolated = "WEIR_RENDER_ISOLATED"
)

const (
	// overhead of address space: Go reserves it in large pieces that it does not
	// use, and collects garbage later than it could.
	overhead = 512 << 20
	// watch is how often memory is looked at: how far the limit can be overrun is
	// what can be written in that time, and the limit of address space ends it.
	watch = 5 * time.Millisecond
)

// ChildMain renders one request if this process was started by a Child, and says
// whether it was. The caller then exits with the code and does nothing else.
func ChildMain(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) (handled bool, code int) {
	if len(args) < 2 || args[1] != ChildArgument {
		return false, 0
	}
	if err := confine(ctx); err != nil {
		return true, reply(stdout, answerOf(nil, fmt.Errorf("%w: %w", ErrCrashed, err)))
	}
	size, err := strconv.ParseInt(os.Getenv(childInput), 10, 64)
	if err != nil {
		return true, reply(stdout, answerOf(nil, ErrCrashed))
	}
	input, err := readAll(stdin, size)
	if err != nil {
		return true, reply(stdout, answerOf(nil, err))
	}
	var request Request
	if err := json.Unmarshal(input, &request); err != nil {
		return true, reply(stdout, answerOf(nil, fmt.Errorf("%w: %w", ErrCrashed, err)))
	}
	return true, reply(stdout, answerOf(renderSafely(ctx, &request)))
}

// renderSafely makes an error of a panic in one of the libraries.
func renderSafely(ctx context.Context, request *Request) (result *Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fault(ErrCrashed, "", "check the files", "rendering ended in a panic: %s", clipped(fmt.Sprint(p)))
		}
	}()
	return new(InProcess).Render(ctx, request)
}

func reply(stdout io.Writer, a *answer) int {
	if err := json.NewEncoder(stdout).Encode(a); err != nil {
		return 1
	}
	return 0
}

// confine sets the limits, before anything of a stranger is read.
func confine(ctx context.Context) error {
	memory, memoryErr := strconv.ParseInt(os.Getenv(childMemory), 10, 64)
	cpu, cpuErr := strconv.ParseInt(os.Getenv(childCPU), 10, 64)
	if err := errors.Join(memoryErr, cpuErr); err != nil {
		return err
	}
	// Libraries that log do it to nobody, and those that would download meet a
	// refusal where the namespace does not stop them.
	log.SetOutput(io.Discard)
	http.DefaultTransport = refusing{}
	size, err := addressSpace()
	if err != nil {
		return err
	}
	limits := map[int]uint64{
		// A backstop: exhausted looks at what is in use, now and then. This is for
		// what asks for all of it at once.
		unix.RLIMIT_AS:     size + 2*uint64(memory) + overhead,
		unix.RLIMIT_FSIZE:  0,
		unix.RLIMIT_CORE:   0,
		unix.RLIMIT_NOFILE: 32,
	}
	if os.Getenv(childIsolated) != "" {
		// Counted in our own namespace, since Linux 5.14. Outside of one it would be all
		// processes of this user on the machine.
		limits[unix.RLIMIT_NPROC] = 64
	}
	for resource, limit := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
	}
	spent := make(chan os.Signal, 1)
	signal.Notify(spent, syscall.SIGXCPU)
	// A second later the kernel kills, in case nobody gets to hear the signal.
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: uint64(cpu), Max: uint64(cpu) + 1}); err != nil {
		return fmt.Errorf("limit of CPU time: %w", err)
	}
	debug.SetMaxStack(64 << 20)
	debug.SetMemoryLimit(memory)
	go func() {
		if code := exhausted(ctx, memory, spent); code != 0 {
			os.Exit(code) //nolint:forbidigo // the process is all there is to end: a template cannot be stopped
		}
	}()
	return nil
}

// addressSpace is how much the process has reserved so far.
func addressSpace() (uint64, error) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	pages, _, _ := strings.Cut(string(statm), " ")
	count, err := strconv.ParseUint(pages, 10, 64)
	return count * uint64(os.Getpagesize()), err
}

// exhausted waits until the process runs out of memory or CPU time, and gives the
// code to exit with. It could also be left to the kernel and to Go's runtime, but
// neither says which it was.
func exhausted(ctx context.Context, memory int64, spent <-chan os.Signal) int {
	tick := time.NewTicker(watch)
	defer tick.Stop()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return 0
		case <-spent:
			return exitCPU
		case <-tick.C:
			if metrics.Read(sample); sample[0].Value.Uint64() > uint64(memory) {
				return exitMemory
			}
		}
	}
}

// refusing is an HTTP transport that goes nowhere.
type refusing struct{}

// RoundTrip implements http.RoundTripper.
func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, ErrRemote }
