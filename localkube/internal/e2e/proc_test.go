// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// needProc skips what can only be seen through Linux's /proc.
func needProc(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
}

// busyMachine tells whether other programs leave so little of the processors
// that a time measured here says nothing about localkube, whose own start has
// a load of about two.
func busyMachine() (load float64, busy bool) {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(data), " ")
	load, err = strconv.ParseFloat(first, 64)
	return load, err == nil && load > 2+1.5*float64(runtime.NumCPU())
}

// childrenOf maps the names of a process's children (their argv[0]) to their
// process ids.
func childrenOf(t *testing.T, parent int) map[string]int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children := map[string]int{}
	for _, file := range stats {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has gone in the meantime
		}
		// pid (name) state ppid ...; the name may contain anything, even ")".
		rest := string(data[strings.LastIndexByte(string(data), ')')+1:])
		if ppid, _ := strconv.Atoi(strings.Fields(rest)[1]); ppid != parent {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil {
			continue
		}
		name, _, _ := strings.Cut(string(cmdline), "\x00")
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		children[name] = pid
	}
	return children
}

// gone is nil when none of the processes exists.
func gone(pids map[string]int) error {
	for name, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("%s (%d) is still there: %v", name, pid, err)
		}
	}
	return nil
}

// listening returns the addresses on which a process accepts TCP connections.
func listening(t *testing.T, pid int) []netip.AddrPort {
	t.Helper()
	var inodes []string
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			if inode, ok := strings.CutPrefix(target, "socket:["); ok {
				inodes = append(inodes, strings.TrimSuffix(inode, "]"))
			}
		}
	}
	var addrs []netip.AddrPort
	for _, table := range []string{"tcp", "tcp6"} {
		file, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6 here
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			const stateListen = "0A"
			if len(fields) > 9 && fields[3] == stateListen && slices.Contains(inodes, fields[9]) {
				addrs = append(addrs, parseAddr(t, fields[1]))
			}
		}
		file.Close()
	}
	return addrs
}

// parseAddr reads the kernel's notation: 32-bit words in host order, in
// hexadecimal, a colon, the port.
func parseAddr(t *testing.T, s string) netip.AddrPort {
	t.Helper()
	host, port, _ := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	addr, ok := netip.AddrFromSlice(raw)
	number, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		t.Fatalf("cannot read the address %q", s)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(number))
}
