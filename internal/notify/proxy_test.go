// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between a client and a server and breaks connections in the ways
// that networks do.
type proxy struct {
	listener net.Listener
	target   string
	serving  sync.WaitGroup

	mu      sync.Mutex
	links   map[*link]struct{}
	refuses bool
	// budget, where not negative, is how many bytes from the server still pass
	// before every connection is cut: in the middle of whatever is being said.
	budget int
}

// link is one connection through the proxy.
type link struct {
	client, server *net.TCPConn
	// open is closed while bytes pass.
	open chan struct{}
	gone chan struct{}
	once sync.Once
}

// throughProxy gives a proxy to the server of a connection string, and the
// connection string that leads through it.
func throughProxy(t *testing.T, dsn string) (*proxy, string) {
	t.Helper()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: address.Host, links: map[*link]struct{}{}, budget: -1}
	p.serving.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.refuse(true)
		p.serving.Wait()
	})
	address.Host = listener.Addr().String()
	return p, address.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.connect(client.(*net.TCPConn))
	}
}

func (p *proxy) connect(client *net.TCPConn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, server: server.(*net.TCPConn), open: make(chan struct{}), gone: make(chan struct{})}
	close(l.open)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses {
		l.cut()
		return
	}
	p.links[l] = struct{}{}
	p.serving.Go(func() { p.pass(l, l.server, l.client, nil) })
	p.serving.Go(func() { p.pass(l, l.client, l.server, p.spend) })
}

// pass copies bytes one way until the connection ends.
func (p *proxy) pass(l *link, to, from *net.TCPConn, allowed func(int) int) {
	defer p.drop(l)
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil || !l.wait(p) {
			return
		}
		pass := n
		if allowed != nil {
			pass = allowed(n)
		}
		if _, err := to.Write(buffer[:pass]); err != nil {
			return
		}
		if pass < n {
			p.cut()
			return
		}
	}
}

// spend says how many of n bytes may pass.
func (p *proxy) spend(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.budget < 0 {
		return n
	}
	pass := min(n, p.budget)
	p.budget -= pass
	if pass < n {
		p.budget = -1
	}
	return pass
}

// wait returns when bytes may pass; false when the connection is gone.
func (l *link) wait(p *proxy) bool {
	p.mu.Lock()
	open := l.open
	p.mu.Unlock()
	select {
	case <-open:
		return true
	case <-l.gone:
		return false
	}
}

// cut ends a connection without a word: what was on its way is lost.
func (l *link) cut() {
	l.once.Do(func() {
		close(l.gone)
		for _, c := range []*net.TCPConn{l.client, l.server} {
			_ = c.SetLinger(0)
			_ = c.Close()
		}
	})
}

func (p *proxy) drop(l *link) {
	l.cut()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// cut ends all connections at once.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// cutAfter ends all connections when so many more bytes have come from the server.
func (p *proxy) cutAfter(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget = bytes
}

// refuse cuts all connections and, while on, lets no other be made.
func (p *proxy) refuse(on bool) {
	p.mu.Lock()
	p.refuses = on
	p.mu.Unlock()
	if on {
		p.cut()
	}
}

// stall stops all bytes on the connections that there are; both ends see them as
// alive. Connections made afterwards work.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		select {
		case <-l.open:
			l.open = make(chan struct{})
		default:
		}
	}
}

// resume lets the bytes go on, late.
func (p *proxy) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		select {
		case <-l.open:
		default:
			close(l.open)
		}
	}
}
