// SPDX-License-Identifier: Apache-2.0

package livestate_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// proxy passes connections on to the API server, until it is told to cut them.
type proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu    sync.Mutex
	deaf  bool // takes connections and cuts them at once
	conns map[net.Conn]struct{}
}

// newProxy gives a configuration that leads through a proxy of its own. It also
// keeps the connections of a test apart from all others.
func newProxy(t testing.TB, config *rest.Config) (*proxy, *rest.Config) {
	t.Helper()
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: server.Host, conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.cut()
		p.wg.Wait()
	})
	config = rest.CopyConfig(config)
	config.Host = "https://" + listener.Addr().String()
	config.ServerName = server.Hostname()
	return p, config
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil || !p.add(in, out) {
			_ = in.Close()
			if out != nil {
				_ = out.Close()
			}
			continue
		}
		p.wg.Go(func() { p.pass(in, out) })
		p.wg.Go(func() { p.pass(out, in) })
	}
}

func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
	return !p.deaf
}

func (p *proxy) pass(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	_ = from.Close()
	_ = to.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, from)
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// setDeaf decides whether new connections are let through.
func (p *proxy) setDeaf(deaf bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = deaf
}
