// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"

	"github.com/weir-gitops/weir/localkube/internal/nodes"
	"github.com/weir-gitops/weir/localkube/internal/supervise"
)

// How long each part may take to end before it is killed. The clients of the
// API server end at once while it is there; the API server finishes requests
// in flight; etcd closes its database.
const (
	clientGrace    = 5 * time.Second
	apiServerGrace = 15 * time.Second
	etcdGrace      = 10 * time.Second
)

// diedError says that a component ended although nobody asked it to.
type diedError struct {
	process *supervise.Process
}

func (e *diedError) Error() string {
	how := "exit code 0"
	if err := e.process.Err(); err != nil {
		how = err.Error()
	}
	return fmt.Sprintf("%s ended unexpectedly (%s)", e.process.Name(), how)
}

// controlPlane is the running parts. start and stop are called by one
// goroutine; died is how the others reach it.
type controlPlane struct {
	settings
	say     progress
	nodeLog io.Writer

	// died has room for every component, so that nobody who reports an end
	// waits for a reader.
	died chan *supervise.Process

	etcdProc, apiProc *supervise.Process
	clients           []*supervise.Process
	stopNodes         func()
}

func newControlPlane(s settings, say progress, nodeLog io.Writer) *controlPlane {
	return &controlPlane{settings: s, say: say, nodeLog: nodeLog, died: make(chan *supervise.Process, 4), stopNodes: func() {}}
}

// launch starts one component and watches over its end.
func (c *controlPlane) launch(spec supervise.Spec) (*supervise.Process, error) {
	p, err := supervise.Start(spec)
	if err != nil {
		return nil, err
	}
	go func() {
		<-p.Done()
		c.died <- p
	}()
	return p, nil
}

// start brings everything up. After an error the parts that run are still to
// be stopped.
func (c *controlPlane) start(ctx context.Context, simulated int) (err error) {
	transport, err := tlsTransport(c.keys)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	web := &http.Client{Transport: transport}

	done := c.say.begin(etcd, "")
	if c.etcdProc, err = c.launch(c.etcd()); err != nil {
		return err
	}
	ep := etcdProbe(c.layout.etcdSocket())
	defer ep.client.CloseIdleConnections()
	if err := c.eventually(ctx, etcd, ep.ask); err != nil {
		return err
	}
	done()

	server := "https://" + loopback(c.ports.APIServer)
	done = c.say.begin(apiServer, server)
	if c.apiProc, err = c.launch(c.apiServer()); err != nil {
		return err
	}
	if err := c.eventually(ctx, apiServer, probe{web, server + "/readyz"}.ask); err != nil {
		return err
	}
	done()
	return c.startClients(ctx, web, simulated)
}

// startClients brings up, side by side, what works through the API server.
func (c *controlPlane) startClients(ctx context.Context, web *http.Client, simulated int) error {
	type client struct {
		spec supervise.Spec
		port int
		path string
		done func()
	}
	clients := []client{
		{spec: c.controllerManager(), port: c.ports.ControllerManager, path: "/healthz"},
		{spec: c.scheduler(), port: c.ports.Scheduler, path: "/readyz"},
	}
	for i := range clients {
		clients[i].done = c.say.begin(clients[i].spec.Name, "")
		p, err := c.launch(clients[i].spec)
		if err != nil {
			return err
		}
		c.clients = append(c.clients, p)
	}
	done := c.say.begin(fmt.Sprintf("%d simulated nodes", simulated), "")
	api, err := c.startNodes(ctx, simulated)
	if err != nil {
		return err
	}
	for _, cl := range clients {
		if err := c.eventually(ctx, cl.spec.Name, probe{web, "https://" + loopback(cl.port) + cl.path}.ask); err != nil {
			return err
		}
		cl.done()
	}
	if err := c.eventually(ctx, "the cluster", usable(api, simulated)); err != nil {
		return err
	}
	done()
	return nil
}

// startNodes registers the simulated nodes and lets them play.
func (c *controlPlane) startNodes(ctx context.Context, count int) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.layout.conf(nodesClient))
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // no limit
	config.UserAgent = "localkube-nodes/" + version.Get().GitVersion
	config.ContentConfig = rest.ContentConfig{
		ContentType:        runtime.ContentTypeProtobuf,
		AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	logf := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(c.nodeLog, time.Now().Format(time.RFC3339)+" "+format+"\n", args...)
	}
	sim := nodes.New(api, count, version.Get().GitVersion, logf)
	if err := c.eventually(ctx, "simulated nodes", sim.Register); err != nil {
		return nil, err
	}
	// The nodes must outlive ctx, which ends when the start is over.
	play, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := sim.Run(play); err != nil {
			logf("%v", err)
		}
	}()
	c.stopNodes = func() {
		cancel()
		<-ended
	}
	return api, nil
}

// usable asks for what the controllers add to a new cluster and the first
// workload needs: nodes without the taint they are born with, and the default
// service account.
func usable(api kubernetes.Interface, simulated int) func(context.Context) error {
	return func(ctx context.Context) error {
		list, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: nodes.SimulatedLabel + "=true"})
		if err != nil {
			return err
		}
		schedulable := 0
		for _, node := range list.Items {
			if !hasTaint(node, corev1.TaintNodeNotReady) && !hasTaint(node, corev1.TaintNodeUnreachable) {
				schedulable++
			}
		}
		if schedulable < simulated {
			return fmt.Errorf("%w: %d of %d nodes", errNotReady, schedulable, simulated)
		}
		_, err = api.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}
}

func hasTaint(node corev1.Node, key string) bool {
	for _, t := range node.Spec.Taints {
		if t.Key == key {
			return true
		}
	}
	return false
}

// stop takes everything down from the top and waits for each part. It may be
// called after a start that failed half-way.
func (c *controlPlane) stop() error {
	c.stopNodes()
	var wg sync.WaitGroup
	errs := make([]error, len(c.clients), len(c.clients)+2)
	for i, p := range c.clients {
		wg.Go(func() { errs[i] = p.Stop(clientGrace) })
	}
	wg.Wait()
	if c.apiProc != nil {
		errs = append(errs, c.apiProc.Stop(apiServerGrace))
	}
	if c.etcdProc != nil {
		errs = append(errs, c.etcdProc.Stop(etcdGrace))
	}
	return errors.Join(errs...)
}
