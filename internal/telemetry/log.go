// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// LogOptions are the log flags of every role.
type LogOptions struct {
	// Format is text or json.
	Format string
	// Level is debug, info, warn or error.
	Level string
}

// NewLogger writes structured logs. Attributes of the work in hand (tenant,
// kind, name, UID, operation) come from the context, see WithWork, so that no
// line can forget them.
func NewLogger(w io.Writer, o LogOptions) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.Level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", o.Level)
	}
	options := &slog.HandlerOptions{Level: level}
	var h slog.Handler
	switch strings.ToLower(o.Format) {
	case "text":
		h = slog.NewTextHandler(w, options)
	case "json":
		h = slog.NewJSONHandler(w, options)
	default:
		return nil, fmt.Errorf("--log-format %q: use text or json", o.Format)
	}
	return slog.New(workHandler{h}), nil
}

// BridgeKubernetes sends the logs of client-go and controller-runtime, which
// keep their logger in a variable of their own, the same way.
func BridgeKubernetes(l *slog.Logger) {
	bridge := logr.FromSlogHandler(quietHandler{l.Handler()})
	klog.SetLogger(bridge)
	ctrl.SetLogger(bridge)
}

// Work names what a line is about.
type Work struct {
	Tenant    string
	Kind      string
	Namespace string
	Name      string
	UID       string
	Operation string
}

type workKey struct{}

// WithWork attaches to the context what lines logged with it are about. Empty
// fields keep what was attached before.
func WithWork(ctx context.Context, w Work) context.Context {
	had, _ := ctx.Value(workKey{}).(Work)
	keep(&w.Tenant, had.Tenant)
	keep(&w.Kind, had.Kind)
	keep(&w.Namespace, had.Namespace)
	keep(&w.Name, had.Name)
	keep(&w.UID, had.UID)
	keep(&w.Operation, had.Operation)
	return context.WithValue(ctx, workKey{}, w)
}

func keep(now *string, had string) {
	if *now == "" {
		*now = had
	}
}

type workHandler struct{ slog.Handler }

func (h workHandler) Handle(ctx context.Context, r slog.Record) error {
	if w, ok := ctx.Value(workKey{}).(Work); ok {
		for _, a := range [...]struct{ key, value string }{
			{"tenant", w.Tenant},
			{"kind", w.Kind},
			{"namespace", w.Namespace},
			{"name", w.Name},
			{"uid", w.UID},
			{"operation", w.Operation},
		} {
			if a.value != "" {
				r.AddAttrs(slog.String(a.key, a.value))
			}
		}
	}
	return h.Handler.Handle(ctx, r)
}

func (h workHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return workHandler{h.Handler.WithAttrs(a)}
}
func (h workHandler) WithGroup(n string) slog.Handler { return workHandler{h.Handler.WithGroup(n)} }

// quietHandler takes the chatter of starting and stopping controllers down to
// debug: what an operator reads at info is Weir's own.
type quietHandler struct{ slog.Handler }

func (h quietHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.Handler.Enabled(ctx, quieter(l))
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = quieter(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(a)}
}

func (h quietHandler) WithGroup(n string) slog.Handler { return quietHandler{h.Handler.WithGroup(n)} }

func quieter(l slog.Level) slog.Level {
	if l == slog.LevelInfo {
		return slog.LevelDebug
	}
	return l
}
