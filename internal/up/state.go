// SPDX-License-Identifier: Apache-2.0

package up

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// State is what one `weir up` tells the next, and the other commands. Whether
// its process runs, only the folder's lock knows; see Running.
type State struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Ready says that the start was completed. What has happened since,
	// `weir status` asks.
	Ready   bool         `json:"ready"`
	Ports   Ports        `json:"ports"`
	Cluster ClusterState `json:"cluster"`
	Engine  EngineState  `json:"engine"`
}

// Ports are on loopback, and kept from one start to the next.
type Ports struct {
	Git    int `json:"git"`
	Probes int `json:"probes"`
}

// ClusterState says which cluster it is.
type ClusterState struct {
	// UID is that of the namespace kube-system, which is how a cluster is known.
	UID string `json:"uid,omitempty"`
	// Given is the kubeconfig that was named; empty for a control plane of our own.
	Given string `json:"given,omitempty"`
	// Localkube is the program of the control plane of our own.
	Localkube string `json:"localkube,omitempty"`
	Server    string `json:"server,omitempty"`
	Version   string `json:"version,omitempty"`
}

// EngineState says what is to work on the Applications, and where.
type EngineState struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
}

// GitURL is where the sample repository is served.
func (s State) GitURL() string { return "http://" + loopback(s.Ports.Git) + "/" + SampleRepository }

// ProbeURL is where /healthz, /readyz and /metrics are.
func (s State) ProbeURL() string { return "http://" + s.ProbeAddress() }

// ProbeAddress is the host and port of the probes.
func (s State) ProbeAddress() string { return loopback(s.Ports.Probes) }

// ErrDiffers says that what runs is not what was asked for.
var ErrDiffers = errors.New("weir already runs with other settings")

// Differs compares what runs with what is asked for.
func (s State) Differs(kubeconfig string, engine EngineState) error {
	given, err := absolute(kubeconfig)
	if err != nil {
		return err
	}
	switch {
	case given != "" && given != s.Cluster.Given:
		return fmt.Errorf("%w: another cluster (%s)", ErrDiffers, s.Cluster.Server)
	case engine != s.Engine:
		return fmt.Errorf("%w: engine %s in namespace %s", ErrDiffers, s.Engine.Kind, s.Engine.Namespace)
	default:
		return nil
	}
}

// ReadState reads the state of the last or present start; the zero State where
// there was none.
func ReadState(f Folder) (State, error) {
	var s State
	data, err := os.ReadFile(f.state())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read the state of the last start: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read the state of the last start: %s: %w; remove the file to choose new ports", f.state(), err)
	}
	return s, nil
}

// WriteState replaces the state in one step.
func WriteState(f Folder, s State) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(f.state(), append(data, '\n')); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}

// Find gives the state of the process that runs in the folder; false where none
// does, whatever the state file says.
func Find(f Folder) (State, bool, error) {
	pid, running, err := holder(f)
	if err != nil || !running {
		return State{}, false, err
	}
	s, err := ReadState(f)
	if err != nil {
		return State{}, true, err
	}
	if s.PID != pid {
		// It has taken the lock and not yet written its state.
		s = State{PID: pid}
	}
	return s, true, nil
}
