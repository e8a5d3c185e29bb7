// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what the kernel says of a process.
type Usage struct {
	CPU time.Duration
	// Resident is the memory that it occupies now, Peak the most it ever did, in
	// bytes.
	Resident, Peak int64
}

// ErrNoProc says that there is no /proc to read, so that processor time and memory
// cannot be measured.
var ErrNoProc = errors.New("/proc is not as Linux has it")

// tick is the kernel's unit of processor time in /proc. It has been 1/100 s for
// programs on every architecture that Go runs on, whatever the kernel uses inside.
const tick = 10 * time.Millisecond

func readUsage(pid int) (Usage, error) {
	folder := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return Usage{}, fmt.Errorf("%w: %w", ErrNoProc, err)
	}
	status, err := os.ReadFile(folder + "/status")
	if err != nil {
		return Usage{}, fmt.Errorf("%w: %w", ErrNoProc, err)
	}
	var u Usage
	if u.CPU, err = parseCPU(stat); err != nil {
		return u, err
	}
	if u.Resident, err = parseKilobytes(status, "VmRSS:"); err != nil {
		return u, err
	}
	u.Peak, err = parseKilobytes(status, "VmHWM:")
	return u, err
}

// parseCPU adds user and system time. The second field is the program's name in
// parentheses and may contain anything, so counting begins after the last one.
func parseCPU(stat []byte) (time.Duration, error) {
	_, after, found := cutLast(stat, ')')
	fields := bytes.Fields(after)
	const user, system = 11, 12 // fields 14 and 15 of the line
	if !found || len(fields) <= system {
		return 0, fmt.Errorf("%w: stat is %q", ErrNoProc, stat)
	}
	var ticks int64
	for _, i := range []int{user, system} {
		n, err := strconv.ParseInt(string(fields[i]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: stat is %q", ErrNoProc, stat)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

func cutLast(text []byte, sep byte) (before, after []byte, found bool) {
	i := bytes.LastIndexByte(text, sep)
	if i < 0 {
		return text, nil, false
	}
	return text[:i], text[i+1:], true
}

// parseKilobytes reads a line such as "VmRSS:	  1234 kB" and gives bytes.
func parseKilobytes(status []byte, name string) (int64, error) {
	for line := range strings.Lines(string(status)) {
		rest, is := strings.CutPrefix(line, name)
		if !is {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) == 2 && fields[1] == "kB" {
			if n, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
				return n * 1024, nil
			}
		}
	}
	return 0, fmt.Errorf("%w: no %s", ErrNoProc, name)
}

// MachineCPU is how long all processors together have worked since the machine
// started.
func MachineCPU() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoProc, err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return parseMachineCPU(first)
}

// parseMachineCPU adds what is neither idle nor waiting for a disk. The last two
// fields, time of guests, are contained in the first two.
func parseMachineCPU(line string) (time.Duration, error) {
	fields := strings.Fields(line)
	const idle, iowait, guest = 4, 5, 9
	if len(fields) < guest || fields[0] != "cpu" {
		return 0, fmt.Errorf("%w: /proc/stat begins with %q", ErrNoProc, line)
	}
	var ticks int64
	for i, field := range fields[1:guest] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: /proc/stat begins with %q", ErrNoProc, line)
		}
		if i+1 != idle && i+1 != iowait {
			ticks += n
		}
	}
	return time.Duration(ticks) * tick, nil
}
