// SPDX-License-Identifier: Apache-2.0

package tenantnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

const (
	defaultConnectTimeout = 10 * time.Second
	// maxTries bounds how many addresses of one name are tried: a name with a
	// thousand addresses would make us scan them.
	maxTries = 8
)

// Dialer connects to addresses that tenants choose. It has no state of its own
// and may be used by many at once. Its zero value connects to nothing.
type Dialer struct {
	judge    judge
	resolver Resolver
	timeout  time.Duration
}

// NewDialer makes a dialer, or fails where the policy cannot be kept.
func NewDialer(p Policy) (*Dialer, error) {
	j, err := newJudge(p)
	if err != nil {
		return nil, err
	}
	d := &Dialer{judge: j, resolver: p.Resolver, timeout: p.ConnectTimeout}
	if d.resolver == nil {
		d.resolver = net.DefaultResolver
	}
	if d.timeout <= 0 {
		d.timeout = defaultConnectTimeout
	}
	return d, nil
}

// DialContext connects to host:port, where network is tcp, tcp4 or tcp6. The
// error is a *DeniedError or an *UnreachableError.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	host, port, err := split(network, address)
	if err != nil {
		return nil, err
	}
	addrs, err := d.judged(ctx, network, host)
	if err != nil {
		return nil, err
	}
	return d.connect(ctx, host, addrs, port)
}

func split(network, address string) (host string, port uint16, err error) {
	host, service, err := net.SplitHostPort(address)
	number, numberErr := strconv.ParseUint(service, 10, 16)
	if err != nil || numberErr != nil || number == 0 {
		return "", 0, &DeniedError{Host: address, Kind: KindMalformed}
	}
	switch network {
	case "tcp", "tcp4", "tcp6":
		return host, uint16(number), nil
	}
	// Datagrams and sockets of this machine have no place in any of our protocols.
	return "", 0, fmt.Errorf("network %q: %w", network, &DeniedError{Host: address, Kind: KindMalformed})
}

// Addresses gives the judged addresses of a host, for a program that makes its
// connections itself and can be told where to: it must be given these, and must
// not look the name up again. At least one address or an error, which is as
// DialContext's.
func (d *Dialer) Addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	addrs, err := d.judged(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	return addrs[:min(len(addrs), maxTries)], nil
}

// judged resolves a host once and gives its addresses if all of them may be
// reached.
func (d *Dialer) judged(ctx context.Context, network, host string) ([]netip.Addr, error) {
	addr, name, err := parseHost(host)
	if err != nil {
		return nil, err
	}
	addrs := []netip.Addr{addr}
	if name != "" {
		if d.resolver == nil {
			return nil, &DeniedError{Host: host, Kind: KindMalformed}
		}
		family := map[string]string{"tcp": "ip", "tcp4": "ip4", "tcp6": "ip6"}[network]
		addrs, err = d.resolver.LookupNetIP(ctx, family, name)
		if err != nil || len(addrs) == 0 {
			return nil, unreachable(host, lookupError(err, host))
		}
	}
	for i, addr := range addrs {
		if kind := d.judge.verdict(addr); kind != "" {
			return nil, &DeniedError{Host: host, Kind: kind}
		}
		addrs[i] = addr.Unmap()
	}
	return addrs, nil
}

func lookupError(err error, host string) error {
	if err == nil {
		return &net.DNSError{Err: "no answer", Name: host, IsNotFound: true}
	}
	return err
}

// connect tries judged addresses in turn, each with an equal share of the time
// that is left, so that one that is silent does not use up the next one's.
func (d *Dialer) connect(ctx context.Context, host string, addrs []netip.Addr, port uint16) (net.Conn, error) {
	addrs = addrs[:min(len(addrs), maxTries)]
	var last error
	for i, addr := range addrs {
		if last = ctx.Err(); last != nil {
			break
		}
		deadline, _ := ctx.Deadline()
		share := time.Until(deadline) / time.Duration(len(addrs)-i)
		// The address is a number: nothing is looked up again.
		conn, err := (&net.Dialer{Timeout: share}).DialContext(ctx, "tcp", netip.AddrPortFrom(addr, port).String())
		if err == nil {
			return conn, nil
		}
		last = err
	}
	return nil, unreachable(host, last)
}
