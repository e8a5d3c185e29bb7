// SPDX-License-Identifier: Apache-2.0

package tenantnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// names is a resolver whose answers to a name come in turn; the last one stays.
type names struct {
	mu      sync.Mutex
	answers map[string][][]string
	asked   []string
	err     error
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, host)
	if n.err != nil {
		return nil, n.err
	}
	turns := n.answers[host]
	if len(turns) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.96.0.10:53", IsNotFound: true}
	}
	if len(turns) > 1 {
		n.answers[host] = turns[1:]
	}
	var addrs []netip.Addr
	for _, text := range turns[0] {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

func dialerOf(t *testing.T, p Policy) *Dialer {
	t.Helper()
	d, err := NewDialer(p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// witness listens on loopback and gives its port. untouched fails the test if
// anybody connected: its own connection has to be the first one in the queue.
func witness(t *testing.T) (port string, untouched func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port, func() {
		t.Helper()
		own, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = own.Close() }()
		first, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = first.Close() }()
		if first.RemoteAddr().String() != own.LocalAddr().String() {
			t.Error("a connection was made to an address that is denied")
		}
	}
}

func TestDeniedAddressesGetNoPacket(t *testing.T) {
	port, untouched := witness(t)
	resolver := &names{answers: map[string][][]string{
		"inside.example.": {{"127.0.0.1"}},
		"mixed.example.":  {{"8.8.8.8", "127.0.0.1"}},
		"mapped.example.": {{"::ffff:127.0.0.1"}},
		"localhost.":      {{"127.0.0.1"}},
	}}
	d := dialerOf(t, Policy{Resolver: resolver})
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "inside.example", "mixed.example", "mapped.example", "localhost", "LOCALHOST"} {
		conn, err := d.DialContext(t.Context(), "tcp", host+":"+port)
		if err == nil {
			_ = conn.Close()
		}
		var denied *DeniedError
		if !errors.As(err, &denied) || !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v, want a denial", host, err)
		}
	}
	untouched()
}

func TestUnusualNumbersReachNoResolver(t *testing.T) {
	port, untouched := witness(t)
	resolver := &names{}
	d := dialerOf(t, Policy{Resolver: resolver})
	for host, want := range map[string]Kind{
		"127.1": KindUnusual, "0x7f.1": KindUnusual, "2130706433": KindUnusual, "0x7f000001": KindUnusual, "017700000001": KindUnusual,
		"0177.0.0.1": KindUnusual, "127.0.0.1.": KindUnusual, "0X7F.0.0.0x1": KindUnusual, "a.0x": KindUnusual, "127.0.0.01": KindUnusual,
		"": KindMalformed, ".": KindMalformed, "a..b": KindMalformed, "-a": KindMalformed, "a b": KindMalformed, "a\x00b": KindMalformed,
		"１２７.0.0.1": KindMalformed, "a/b": KindMalformed, "a@b": KindMalformed, "a%25b": KindMalformed, strings.Repeat("a.", 130): KindMalformed, strings.Repeat("a", 64): KindMalformed,
		"fe80::1%lo": KindZoned, "::1%lo": KindZoned,
	} {
		_, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		var denied *DeniedError
		if !errors.As(err, &denied) || denied.Kind != want {
			t.Errorf("%q: %v, want %s", host, err, want)
		}
	}
	if len(resolver.asked) != 0 {
		t.Errorf("the resolver was asked for %q", resolver.asked)
	}
	untouched()
}

func TestOnlyTCPAndPorts(t *testing.T) {
	d := dialerOf(t, Policy{AllowLoopback: true})
	for _, c := range [][2]string{
		{"udp", "127.0.0.1:53"},
		{"unix", "/run/docker.sock"},
		{"unix", "a:1"},
		{"ip", "127.0.0.1:1"},
		{"tcp", "127.0.0.1:0"},
		{"tcp", "127.0.0.1:65536"},
		{"tcp", "127.0.0.1:https"},
		{"tcp", "127.0.0.1:-1"},
		{"tcp", "127.0.0.1"},
		{"tcp", ""},
	} {
		if _, err := d.DialContext(t.Context(), c[0], c[1]); !errors.Is(err, ErrDenied) {
			t.Errorf("%v: %v, want %v", c, err, ErrDenied)
		}
	}
	if _, err := new(Dialer).DialContext(t.Context(), "tcp", "8.8.8.8:53"); !errors.Is(err, ErrDenied) && !errors.Is(err, ErrUnreachable) {
		t.Errorf("the zero dialer: %v", err)
	}
	if kind := new(Dialer).judge.verdict(netip.MustParseAddr("8.8.8.8")); kind == "" {
		t.Error("the zero dialer allows an address")
	}
}

// The name is public at the first lookup and loopback at every later one. The
// dialer looks it up once for each connection, so the first answer is dialled
// and the second one refused.
func TestRebindingNames(t *testing.T) {
	port, untouched := witness(t)
	good, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = good.Close() }()
	_, goodPort, _ := net.SplitHostPort(good.Addr().String())
	resolver := &names{answers: map[string][][]string{"rebind.example.": {{"127.0.0.2"}, {"127.0.0.1"}}}}
	// 127.0.0.2 stands for the public address.
	d := dialerOf(t, Policy{Resolver: resolver, Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}})

	conn, err := d.DialContext(t.Context(), "tcp", "rebind.example:"+goodPort)
	if err != nil {
		t.Fatal(err)
	}
	if got := conn.RemoteAddr().String(); got != "127.0.0.2:"+goodPort {
		t.Errorf("connected to %s", got)
	}
	_ = conn.Close()
	if len(resolver.asked) != 1 {
		t.Errorf("looked up %d times for one connection", len(resolver.asked))
	}
	if _, err := d.DialContext(t.Context(), "tcp", "rebind.example:"+port); !errors.Is(err, ErrDenied) {
		t.Errorf("second time: %v, want %v", err, ErrDenied)
	}
	untouched()
}

func TestNextAddressIsTried(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	resolver := &names{answers: map[string][][]string{"two.example.": {{"127.0.0.3", "::ffff:127.0.0.1"}}}}
	d := dialerOf(t, Policy{Resolver: resolver, AllowLoopback: true})
	conn, err := d.DialContext(t.Context(), "tcp", "two.example:"+port)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

func TestWhatDoesNotAnswer(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(closed.Addr().String())
	_ = closed.Close()
	d := dialerOf(t, Policy{AllowLoopback: true, Resolver: &names{answers: map[string][][]string{"refuses.example.": {{"127.0.0.1"}}}}})

	_, err = d.DialContext(t.Context(), "tcp", "refuses.example:"+port)
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("refused: %v", err)
	}
	_, err = d.DialContext(t.Context(), "tcp", "unknown.example:443")
	if !errors.Is(err, ErrUnreachable) || strings.Contains(err.Error(), "10.96.0.10") {
		t.Errorf("unknown name: %v", err)
	}
	slow := dialerOf(t, Policy{Resolver: silent{}, ConnectTimeout: 20 * time.Millisecond})
	_, err = slow.DialContext(t.Context(), "tcp", "slow.example:443")
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || !unreachable.Timeout() {
		t.Errorf("silent resolver: %v", err)
	}
}

// silent never answers.
type silent struct{}

func (silent) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestDenialsSayTheKindAndNotTheAnswer(t *testing.T) {
	resolver := &names{answers: map[string][][]string{
		"db.corp.example.":   {{"10.11.12.13"}},
		"meta.example.":      {{"169.254.169.254"}},
		"kubernetes.":        {{"10.96.0.1"}},
		"benchmark.example.": {{"198.18.7.7"}},
	}}
	d := dialerOf(t, Policy{Resolver: resolver})
	for host, want := range map[string]string{
		"db.corp.example": `"db.corp.example" leads to a private address; use a host that is reachable from the Internet, or ask the operator of this service to allow private networks`,
		"meta.example":    `"meta.example" leads to a cloud's metadata service, which is never allowed; use a host that is reachable from the Internet`,
		"kubernetes":      `"kubernetes" leads to a private address; use a host that is reachable from the Internet, or ask the operator of this service to allow private networks`,
		"benchmark.example": `"benchmark.example" leads to an address that is not in public use (benchmark); ` +
			`use a host that is reachable from the Internet`,
		"127.1": `"127.1" is a number in place of a host; write an IPv4 address as four decimal numbers, or use a name`,
	} {
		if _, err := d.DialContext(t.Context(), "tcp", host+":443"); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
