// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/telemetry"
)

// Report is what `weir status` tells.
type Report struct {
	Folder  string `json:"folder"`
	Running bool   `json:"running"`
	// Ready says that it runs and that every part answers.
	Ready      bool      `json:"ready"`
	PID        int       `json:"pid,omitempty"`
	Version    string    `json:"version,omitempty"`
	Started    time.Time `json:"started,omitzero"`
	Kubeconfig string    `json:"kubeconfig,omitempty"`
	Parts      []Part    `json:"parts,omitempty"`
}

// Part is one thing that runs.
type Part struct {
	Name string `json:"name"`
	// Where it is reached, where it is reached at all.
	Where string `json:"where,omitempty"`
	Ready bool   `json:"ready"`
	// Problems say what is wrong.
	Problems []string `json:"problems,omitempty"`
}

// askWithin is how long each part has for its answer. Roles ask their
// dependencies in turn, and have a limit of their own for that.
const askWithin = 5 * time.Second

// Inspect asks every part how it is. What it finds is in the report; the error
// is for a folder that cannot be read.
func Inspect(ctx context.Context, f Folder) (Report, error) {
	s, running, err := Find(f)
	if err != nil {
		return Report{}, err
	}
	r := Report{Folder: f.Path(), Running: running}
	if !running {
		return r, nil
	}
	r.PID, r.Version, r.Started = s.PID, s.Version, s.Started
	if s.Ports == (Ports{}) {
		// It has begun this very moment.
		return r, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	r.Kubeconfig = f.Kubeconfig()
	r.Parts = append(askRoles(ctx, s), askCluster(ctx, f, s), askGit(ctx, s))
	r.Ready = s.Ready && !slices.ContainsFunc(r.Parts, func(p Part) bool { return !p.Ready })
	return r, nil
}

// askRoles sorts the answers of /readyz by role: "backend: database" is one of
// the backend's.
func askRoles(ctx context.Context, s State) []Part {
	body, err := get(ctx, s.ProbeURL()+"/readyz")
	var answer telemetry.Readiness
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil {
		return []Part{part("roles", s.ProbeURL(), err)}
	}
	var roles []Part
	for _, name := range slices.Sorted(maps.Keys(answer.Dependencies)) {
		role, dependency, _ := strings.Cut(name, ": ")
		if len(roles) == 0 || roles[len(roles)-1].Name != role {
			roles = append(roles, part(role, "", nil))
		}
		if said := answer.Dependencies[name]; said != answerOK {
			last := &roles[len(roles)-1]
			last.Ready = false
			last.Problems = append(last.Problems, dependency+": "+said)
		}
	}
	return roles
}

func askCluster(ctx context.Context, f Folder, s State) Part {
	config, err := kube.LoadConfig(f.Kubeconfig())
	if err == nil {
		err = kube.Answers(config)(ctx)
	}
	name := "kubernetes"
	if s.Cluster.Given == "" {
		name = "localkube"
	}
	return part(name, s.Cluster.Server, err)
}

func askGit(ctx context.Context, s State) Part {
	_, err := get(ctx, s.GitURL()+"/info/refs?service=git-upload-pack")
	return part("git server", s.GitURL(), err)
}

func part(name, where string, err error) Part {
	p := Part{Name: name, Where: where, Ready: err == nil}
	if err != nil {
		p.Problems = []string{err.Error()}
	}
	return p
}

// errAnswer says that a part answered, but not as it should.
var errAnswer = errors.New("unexpected answer")

// get reads one of our own pages. A role that is not ready answers 503, and
// says in the body why.
func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	// One question: no connection is to be kept for the next.
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusServiceUnavailable {
		return nil, fmt.Errorf("%w: %s", errAnswer, res.Status)
	}
	return io.ReadAll(io.LimitReader(res.Body, 1<<20))
}

// Text is the report in words.
func (r Report) Text(now time.Time, w Words) string {
	var b strings.Builder
	if !r.Running {
		fmt.Fprintf(&b, "Weir does not run in %s. Start it with: %s up\n", w.Short(r.Folder), w.Weir)
		return b.String()
	}
	fmt.Fprintf(&b, "Weir runs in %s: process %d", w.Short(r.Folder), r.PID)
	if !r.Started.IsZero() {
		fmt.Fprintf(&b, ", version %s, for %s", r.Version, now.Sub(r.Started).Round(time.Second))
	}
	b.WriteString(".\n")
	if len(r.Parts) == 0 {
		b.WriteString("  it is starting\n")
	}
	for _, p := range r.Parts {
		answer := "ready"
		if !p.Ready {
			answer = "NOT READY"
		}
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("  %-11s %-10s %s", p.Name, answer, p.Where), " "))
		for _, problem := range p.Problems {
			fmt.Fprintf(&b, "  %-11s %s\n", "", problem)
		}
	}
	return b.String()
}
