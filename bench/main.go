// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/bench/report"
	"github.com/weir-gitops/weir/bench/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// flags are what the command line says.
type flags struct {
	quick     bool
	keep      bool
	only      []string
	results   string
	weir      string
	localkube string
}

// resultsFile is written by a whole run.
const resultsFile = "bench/results.json"

func parseFlags(args []string, out io.Writer) (flags, error) {
	var f flags
	var only string
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(out)
	set.BoolVar(&f.quick, "quick", false, "smaller counts, to see that everything works; the figures mean little")
	set.BoolVar(&f.keep, "keep", false, "keep the folder with the control plane's data and all logs")
	set.StringVar(&only, "only", "", "run only these scenarios, separated by commas: "+strings.Join(scenarioNames(), ", "))
	set.StringVar(&f.results, "results", "", "where to write the figures (default: "+resultsFile+" for a whole run, nowhere with --quick or --only)")
	set.StringVar(&f.weir, "weir", "bin/weir", "the weir program")
	set.StringVar(&f.localkube, "localkube", "bin/localkube", "the localkube program")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("what is %q? There are only flags, see --help", set.Arg(0))
	}
	if only != "" {
		f.only = strings.Split(only, ",")
	}
	for _, name := range f.only {
		if !slices.Contains(scenarioNames(), name) {
			return f, fmt.Errorf("--only: there is no scenario %q, but %s", name, strings.Join(scenarioNames(), ", "))
		}
	}
	if f.results == "" && !f.quick && len(f.only) == 0 {
		f.results = resultsFile
	}
	for _, program := range []string{f.weir, f.localkube} {
		if _, err := os.Stat(program); err != nil {
			return f, fmt.Errorf("%w; build it with: make build", err)
		}
	}
	return f, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f, err := parseFlags(args, out)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	start := time.Now()
	say := progress(out, start)
	say("data and logs are in %s", folder)

	results := &report.Results{Date: start.UTC().Truncate(time.Second), Quick: f.quick, Machine: describeMachine(folder)}
	err = measure(ctx, f, folder, say, results)
	if f.keep {
		say("kept: %s", folder)
	} else {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	results.Seconds = time.Since(start).Round(time.Second).Seconds()
	return errors.Join(err, show(out, f, results))
}

// progress prints lines with the time since the start.
func progress(out io.Writer, start time.Time) func(string, ...any) {
	return func(format string, args ...any) {
		fmt.Fprintf(out, "%6.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
}

// measure starts everything, runs the scenarios and stops everything.
func measure(ctx context.Context, f flags, folder string, say func(string, ...any), results *report.Results) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r, err := rig.Start(ctx, rig.Options{Folder: folder, Weir: f.weir, Localkube: f.localkube, Say: say, Fail: fail})
	if err != nil {
		return err
	}
	defer func() {
		say("stopping")
		err = errors.Join(err, r.Stop())
	}()
	if results.Machine.Kubernetes, err = r.Version(ctx); err != nil {
		return err
	}
	if results.Machine.PostgreSQL, err = r.PostgresVersion(ctx); err != nil {
		return err
	}
	b := &bench{rig: r, sizes: fullSizes(), results: results, say: say, clients: map[string]client.Client{}}
	if f.quick {
		b.sizes = quickSizes()
	}
	say("warming up")
	if err := b.warmUp(ctx); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	return b.runScenarios(ctx, f.only)
}

// show prints the table and writes the file.
func show(out io.Writer, f flags, results *report.Results) error {
	if len(results.Figures) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if err := report.WriteTable(out, results.Figures); err != nil {
		return err
	}
	if err := report.WriteDetails(out, results.Figures); err != nil {
		return err
	}
	met, missed := results.Judgement()
	fmt.Fprintf(out, "\n%d targets met, %d missed, in %.0f s", met, len(missed), results.Seconds)
	if len(missed) > 0 {
		fmt.Fprintf(out, ":\n  %s", strings.Join(missed, "\n  "))
	}
	fmt.Fprintln(out)
	m := results.Machine
	if m.LoadBefore > busy {
		fmt.Fprintf(out, "The machine was busy with something else (load %.1f on %d cores): latencies and ratios mean little.\n", m.LoadBefore, m.Cores)
	}
	if !m.Durable {
		fmt.Fprintln(out, "The temporary folder is kept in memory, so nothing waited for a disk: set TMPDIR to a folder on one.")
	}
	if f.results == "" {
		return nil
	}
	fmt.Fprintln(out, "written to", f.results)
	return results.Save(f.results)
}
