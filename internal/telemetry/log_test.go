// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
)

func newLogger(t *testing.T, format, level string) (*slog.Logger, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	l, err := NewLogger(out, LogOptions{Format: format, Level: level})
	if err != nil {
		t.Fatal(err)
	}
	return l, out
}

// line reads one JSON line without its time.
func line(t *testing.T, out *bytes.Buffer) map[string]any {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	delete(got, slog.TimeKey)
	return got
}

func TestLogLinesSayWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	whole := Work{Tenant: "t", Kind: "GitOpsDeployment", Namespace: "team-a", Name: "shop", UID: "u", Operation: "o"}
	for name, c := range map[string]struct {
		work []Work
		want map[string]any
	}{
		"nothing known": {nil, map[string]any{}},
		"everything": {[]Work{whole}, map[string]any{
			"tenant": "t", "kind": "GitOpsDeployment", "namespace": "team-a", "name": "shop", "uid": "u", "operation": "o",
		}},
		"only what is known":           {[]Work{{Kind: "Application"}}, map[string]any{"kind": "Application"}},
		"more becomes known":           {[]Work{{Kind: "k", Tenant: "t"}, {Operation: "o"}}, map[string]any{"kind": "k", "tenant": "t", "operation": "o"}},
		"what is known better, counts": {[]Work{{Tenant: "t", Kind: "a"}, {Kind: "b"}}, map[string]any{"tenant": "t", "kind": "b"}},
		"saying nothing keeps it":      {[]Work{{Tenant: "t"}, {}}, map[string]any{"tenant": "t"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, out := newLogger(t, "json", "info")
			ctx := t.Context()
			for _, w := range c.work {
				ctx = WithWork(ctx, w)
			}
			l.InfoContext(ctx, "hello", "n", 7.0)
			c.want["level"], c.want["msg"], c.want["n"] = "INFO", "hello", 7.0
			if diff := cmp.Diff(c.want, line(t, out)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A line about inner work does not change what outer lines are about.
func TestWithWorkLeavesTheOuterContextAlone(t *testing.T) {
	t.Parallel()
	l, out := newLogger(t, "json", "info")
	outer := WithWork(t.Context(), Work{Tenant: "a"})
	WithWork(outer, Work{Tenant: "b", Operation: "o"})
	l.InfoContext(outer, "x")
	if diff := cmp.Diff(map[string]any{"level": "INFO", "msg": "x", "tenant": "a"}, line(t, out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoggersMadeFromItSayItToo(t *testing.T) {
	t.Parallel()
	l, out := newLogger(t, "json", "info")
	l.With("part", "outbox").InfoContext(WithWork(t.Context(), Work{Tenant: "t"}), "x")
	if diff := cmp.Diff(map[string]any{"level": "INFO", "msg": "x", "part": "outbox", "tenant": "t"}, line(t, out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLogFlags(t *testing.T) {
	t.Parallel()
	for _, o := range []LogOptions{{"text", "debug"}, {"json", "info"}, {"JSON", "WARN"}, {"text", "error"}} {
		if _, err := NewLogger(&bytes.Buffer{}, o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, c := range []struct {
		options LogOptions
		want    string
	}{
		{LogOptions{"xml", "info"}, `--log-format "xml": use text or json`},
		{LogOptions{"", "info"}, `--log-format "": use text or json`},
		{LogOptions{"text", "loud"}, `--log-level "loud": use debug, info, warn or error`},
		{LogOptions{"text", ""}, `--log-level "": use debug, info, warn or error`},
	} {
		if _, err := NewLogger(&bytes.Buffer{}, c.options); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v; want %s", c.options, err, c.want)
		}
	}
}

func TestLogLevel(t *testing.T) {
	t.Parallel()
	l, out := newLogger(t, "text", "warn")
	l.Info("quiet")
	l.Warn("loud")
	if strings.Contains(out.String(), "quiet") || !strings.Contains(out.String(), "loud") {
		t.Errorf("logged:\n%s", out)
	}
}

// What client-go and controller-runtime say at info is for debugging; what they
// say is wrong is for the operator.
func TestKubernetesChatterIsForDebugging(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]string{"info": "ERROR broken", "debug": "DEBUG starting,DEBUG key,ERROR broken"} {
		out := &bytes.Buffer{}
		l, err := NewLogger(out, LogOptions{Format: "json", Level: level})
		if err != nil {
			t.Fatal(err)
		}
		bridge := logr.FromSlogHandler(quietHandler{l.Handler()}).WithName("controller").WithValues("kind", "x")
		bridge.Info("starting")
		bridge.WithValues("k", "v").Info("key")
		bridge.Error(nil, "broken")
		var got []string
		for text := range strings.Lines(out.String()) {
			entry := line(t, bytes.NewBufferString(text))
			got = append(got, entry["level"].(string)+" "+entry["msg"].(string))
			if entry["kind"] != "x" {
				t.Errorf("an attribute is lost: %s", text)
			}
		}
		if s := strings.Join(got, ","); s != want {
			t.Errorf("at level %s: %s; want %s", level, s, want)
		}
	}
}

func TestQuietHandlerKeepsGroups(t *testing.T) {
	t.Parallel()
	l, out := newLogger(t, "json", "debug")
	slog.New(quietHandler{l.Handler()}).WithGroup("g").Warn("x", "n", 1)
	want := map[string]any{"level": "WARN", "msg": "x", "g": map[string]any{"n": 1.0}}
	if diff := cmp.Diff(want, line(t, out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
