// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// binary is the program under test, set by TestMain.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped: the end-to-end tests need the real binary (-short)")
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if binary = os.Getenv("LOCALKUBE_BIN"); binary == "" {
		dir, err := os.MkdirTemp("", "localkube-bin-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "localkube")
		if err := build(binary); err != nil {
			fmt.Fprintln(os.Stderr, "build localkube:", err)
			return 1
		}
	}
	return m.Run()
}

// build says that it is still at work, because the first time is long.
func build(out string) error {
	began := time.Now()
	fmt.Fprintln(os.Stderr, "building localkube (LOCALKUBE_BIN is not set); the first time takes minutes")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", out, "../..")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	done := make(chan error, 1)
	go func() { done <- cmd.Run() }()
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			fmt.Fprintf(os.Stderr, "built in %s\n", time.Since(began).Round(time.Second))
			return err
		case <-tick.C:
			fmt.Fprintf(os.Stderr, "still building after %s\n", time.Since(began).Round(time.Second))
		}
	}
}
