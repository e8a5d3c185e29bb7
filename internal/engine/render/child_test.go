// SPDX-License-Identifier: Apache-2.0

package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/internal/engine/source"
)

func TestMain(m *testing.M) {
	if handled, code := ChildMain(context.Background(), os.Args, os.Stdin, os.Stdout); handled {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

func newChild(t *testing.T, limits ChildLimits) *Child {
	t.Helper()
	return &Child{Folder: t.TempDir(), Limits: limits, Log: slog.New(slog.DiscardHandler)}
}

// gone checks that no process and no file of a child is left.
func gone(t *testing.T, c *Child) {
	t.Helper()
	eventually(t, "nothing of the child is left", func() bool {
		folders, err := filepath.Glob(filepath.Join(c.Folder, "*"))
		return err == nil && len(folders) == 0 && len(processes(c.Folder)) == 0
	})
}

// processes finds children by their environment.
func processes(folder string) []string {
	var found []string
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environments {
		if env, err := os.ReadFile(path); err == nil && strings.Contains(string(env), "TMPDIR="+folder) {
			found = append(found, path)
		}
	}
	return found
}

// eventually polls where only another process could tell.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("never: " + what)
		}
	}
}

// forever is a template that takes hours.
const forever = `{{ range $i, $e := until 100000 }}{{ range $j, $f := until 100000 }}{{ if eq $i -1 }}x{{ end }}{{ end }}{{ end }}`

func TestChildSaysWhatThisProcessWouldSay(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		spec  Spec
	}{
		"directory": {map[string]string{"a.yaml": configMap("a") + "---\n" + configMap("a")}, Spec{}},
		"kustomize": {map[string]string{"kustomization.yaml": "resources: [a.yaml]\nnamePrefix: x-\n", "a.yaml": configMap("a")}, Spec{}},
		"helm":      {chartFiles(nil), Spec{Path: "c", Name: "app", Namespace: "ns"}},
		"error":     {map[string]string{"a.yaml": "kind: X\n"}, Spec{}},
	} {
		t.Run(name, func(t *testing.T) {
			gather := func() *Request {
				request, err := Gather(t.Context(), source.FromFiles(test.files), test.spec, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				return request
			}
			c := newChild(t, ChildLimits{})
			got, gotErr := c.Render(t.Context(), gather())
			want, wantErr := new(InProcess).Render(t.Context(), gather())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if fmt.Sprint(wantErr) != fmt.Sprint(gotErr) || (wantErr != nil) != (name == "error") || wantErr != nil && !errors.Is(gotErr, ErrInvalid) {
				t.Errorf("%v, in a child %v", wantErr, gotErr)
			}
			gone(t, c)
		})
	}
}

func chartWith(template string) map[string]string {
	return chartFiles(map[string]string{"c/templates/bomb.yaml": template})
}

// archiveBomb is a chart with a file of 200 MiB of zeros in it.
func archiveBomb(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	archive := tar.NewWriter(packed)
	const size = 200 << 20
	if err := archive.WriteHeader(&tar.Header{Name: "sub/Chart.yaml", Mode: 0o600, Size: size}); err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range size / len(zeros) {
		if _, err := archive.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	limits := ChildLimits{Timeout: 20 * time.Second, CPU: 3 * time.Second, Memory: 256 << 20}
	chart := Spec{Path: "c", Name: "app"}
	for name, test := range map[string]struct {
		files map[string]string
		spec  Spec
		kinds []error
	}{
		"aliases":              {map[string]string{"a.yaml": aliasBomb()}, Spec{}, []error{ErrTooLarge}},
		"aliases in Kustomize": {map[string]string{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": aliasBomb()}, Spec{}, []error{ErrTooLarge}},
		"aliases in a chart":   {chartFiles(map[string]string{"c/values.yaml": aliasBomb()}), chart, []error{ErrTooLarge}},
		"a template that does not end": {
			chartWith(forever), chart, []error{ErrTime},
		},
		"a template that includes itself": {
			chartWith(`{{ define "r" }}{{ include "r" . }}{{ include "r" . }}{{ end }}{{ include "r" . }}`),
			chart,
			[]error{ErrInvalid, ErrTime, ErrMemory},
		},
		"a template that calls itself": {
			chartWith(`{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}`), chart, []error{ErrInvalid, ErrTime, ErrMemory},
		},
		"a gigabyte": {
			chartWith(`{{ $a := repeat 1000000 "0123456789" }}{{ range until 1000 }}{{ $a }}{{ end }}`), chart, []error{ErrMemory},
		},
		"a gigabyte at once": {
			chartWith(`{{ repeat 1000000000 "0123456789" }}`), chart, []error{ErrMemory},
		},
		"more than may be answered": {
			chartWith("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: {{ repeat 4000000 \"0123456789\" }}\n"), chart, []error{ErrTooLarge, ErrMemory},
		},
		"too many objects": {
			chartWith("{{ range until 6000 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a{{ . }}}\n{{ end }}"), chart, []error{ErrTooLarge},
		},
		"an archive that unpacks to more than there is": {
			chartFiles(map[string]string{"c/charts/sub-1.0.0.tgz": archiveBomb(t)}), chart, []error{ErrInvalid, ErrMemory},
		},
		"an expression that backtracks": {
			chartWith(`{{ regexMatch "(a|aa)+$" (repeat 3000000 "a") }}`), chart, []error{ErrTime, ErrInvalid, ErrMemory},
		},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := Gather(t.Context(), source.FromFiles(test.files), test.spec, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			c := newChild(t, limits)
			began := time.Now()
			_, err = c.Render(t.Context(), request)
			took := time.Since(began)
			var own *Error
			if !errors.As(err, &own) {
				t.Fatalf("not an error in words: %v", err)
			}
			matched := raced && errors.Is(err, ErrCrashed)
			for _, kind := range test.kinds {
				matched = matched || errors.Is(err, kind)
			}
			if !matched {
				t.Errorf("%v; want one of %v", err, test.kinds)
			}
			if took > limits.Timeout+time.Second {
				t.Errorf("took %s", took)
			}
			t.Logf("%s: %s", took.Round(time.Millisecond), err)
			gone(t, c)
		})
	}
}

func TestDeadlineAndCancel(t *testing.T) {
	request, err := Gather(t.Context(), source.FromFiles(chartWith(forever)), Spec{Path: "c", Name: "app"}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	c := newChild(t, ChildLimits{Timeout: 300 * time.Millisecond, Memory: 2 << 30})
	if _, err := c.Render(t.Context(), request); !errors.Is(err, ErrTime) {
		t.Errorf("deadline: %v", err)
	}
	gone(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	c = newChild(t, ChildLimits{Memory: 2 << 30})
	if _, err := c.Render(ctx, request); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller gives up: %v", err)
	}
	gone(t, c)
}

func TestChildIsAlone(t *testing.T) {
	t.Setenv("CANARY", "s3cret-canary")
	c := newChild(t, ChildLimits{})
	for _, template := range []string{
		`{{ fail (printf "%v" (list (getHostByName "localhost") (lookup "v1" "Pod" "a" "b"))) }}`, `{{ env "CANARY" }}`, `{{ expandenv "$CANARY" }}`,
	} {
		request, err := Gather(t.Context(), source.FromFiles(chartWith(template)), Spec{Path: "c", Name: "app"}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Render(t.Context(), request); !errors.Is(err, ErrInvalid) || strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// TestChildIsConfined looks at a child from outside while it works.
func TestChildIsConfined(t *testing.T) {
	request, err := Gather(t.Context(), source.FromFiles(chartWith(forever)), Spec{Path: "c", Name: "app"}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := newChild(t, ChildLimits{Memory: 2 << 30})
	var log bytes.Buffer
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	done := make(chan error, 1)
	go func() { _, err := c.Render(ctx, request); done <- err }()
	process, limits := "", ""
	eventually(t, "the child has its limits", func() bool {
		for _, path := range processes(c.Folder) {
			process = filepath.Dir(path)
			text, _ := os.ReadFile(filepath.Join(process, "limits"))
			limits = string(text)
			if regexp.MustCompile(`Max cpu time +30 +31`).MatchString(limits) {
				return true
			}
		}
		return false
	})
	for _, want := range []string{`Max file size +0 +0`, `Max open files +32 +32`, `Max core file size +0 +0`, `Max address space +\d+ +\d+`} {
		if !regexp.MustCompile(want).MatchString(limits) {
			t.Errorf("no %q in\n%s", want, limits)
		}
	}
	env, err := os.ReadFile(filepath.Join(process, "environ"))
	if err != nil || strings.Contains(string(env), "PATH=") {
		t.Errorf("%v: environment %q", err, env)
	}
	ours, _ := os.Readlink("/proc/self/ns/net")
	theirs, err := os.Readlink(filepath.Join(process, "ns", "net"))
	network, _ := os.ReadFile(filepath.Join(process, "net", "route"))
	cancel()
	if got := <-done; !errors.Is(got, context.Canceled) {
		t.Error(got)
	}
	gone(t, c)
	if strings.Contains(log.String(), "not kept from the network") {
		t.Skip("the kernel allows no namespaces here")
	}
	if err != nil || ours == theirs || strings.Count(string(network), "\n") > 1 {
		t.Errorf("the child is in our network: %s, %s, %v, routes %q", ours, theirs, err, network)
	}
}

func BenchmarkChild(b *testing.B) {
	request, err := Gather(b.Context(), source.FromFiles(map[string]string{"a.yaml": configMap("a")}), Spec{}, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	c := &Child{Folder: b.TempDir()}
	for b.Loop() {
		if _, err := c.Render(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}
