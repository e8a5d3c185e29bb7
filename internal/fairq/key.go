// SPDX-License-Identifier: Apache-2.0

package fairq

// The runners of an application. They run independently of each other.
const (
	RunnerDeployment = "deployment"
	RunnerSyncRun    = "syncrun"
)

// Keyed is what the queue must know of an item. The item itself is the unit of exclusivity: equal items never run at
// the same time.
type Keyed interface {
	comparable
	// WorkspaceKey names the workspace that the item belongs to. It depends on the item alone, and it must not call
	// the queue.
	WorkspaceKey() string
}

// Key names one runner of one application of one workspace: what the specification's event hierarchy ends in.
type Key struct {
	// Workspace is the API namespace of the tenant's resource.
	Workspace string
	// Application is the resource's name.
	Application string
	// Runner is RunnerDeployment, RunnerSyncRun, or another name for work that is independent of those.
	Runner string
}

// WorkspaceKey implements Keyed.
func (k Key) WorkspaceKey() string { return k.Workspace }

// String is for logs; it reads workspace/application/runner.
func (k Key) String() string { return k.Workspace + "/" + k.Application + "/" + k.Runner }
