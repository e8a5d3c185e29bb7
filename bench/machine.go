// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/weir-gitops/weir/bench/report"
)

// busy is the load above which somebody else was at work when the run began.
const busy = 1.0

// describeMachine says what the figures depend on. What the system does not tell
// is left out.
func describeMachine(folder string) report.Machine {
	m := report.Machine{
		Cores: runtime.NumCPU(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Durable: onDisk(folder),
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		m.LoadBefore, _ = strconv.ParseFloat(first, 64)
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.Processor = lineValue(string(text), "model name")
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		kilobytes, _ := strconv.ParseFloat(strings.TrimSuffix(lineValue(string(text), "MemTotal"), " kB"), 64)
		m.MemoryGB = float64(int(kilobytes/(1<<20)*10)) / 10
	}
	return m
}

// lineValue finds a line such as "name : value".
func lineValue(text, name string) string {
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// onDisk says whether writes to a folder can be made durable at all.
func onDisk(folder string) bool {
	const tmpfs, ramfs = 0x01021994, 0x858458f6
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return true
	}
	kind := int64(fs.Type) & 0xffffffff //nolint:unconvert // The field is of another type on other systems.
	return kind != tmpfs && kind != ramfs
}
