// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// ErrPortTaken says that a port that was asked for is another program's.
var ErrPortTaken = errors.New("the port is taken by another program")

var errNoPort = errors.New("no free port on 127.0.0.1")

// New ports are below the range from which systems take those of outgoing
// connections, so that none is taken by chance while Weir is down.
const (
	firstPort = 20000
	lastPort  = 29999
	portTries = 200
)

// choosePorts takes the ports that are asked for, or else keeps the earlier
// ones that are free, or else takes new ones. Between this look and the moment
// the port is opened another program could take it; opening it then fails with
// that message.
func choosePorts(ctx context.Context, asked, earlier Ports) (Ports, error) {
	var chosen Ports
	for _, p := range []struct {
		flag           string
		asked, earlier int
		chosen         *int
	}{
		{"--git-port", asked.Git, earlier.Git, &chosen.Git},
		{"--probe-port", asked.Probes, earlier.Probes, &chosen.Probes},
	} {
		if p.asked != 0 {
			if !isFree(ctx, p.asked) {
				return Ports{}, fmt.Errorf("%s %d: %w; choose another, or leave the flag out", p.flag, p.asked, ErrPortTaken)
			}
			*p.chosen = p.asked
			continue
		}
		port := p.earlier
		for try := 0; port == 0 || port == chosen.Git || port == asked.Probes || !isFree(ctx, port); try++ {
			if try == portTries {
				return Ports{}, errNoPort
			}
			port = firstPort + rand.IntN(lastPort-firstPort+1)
		}
		*p.chosen = port
	}
	if chosen.Git == chosen.Probes {
		return Ports{}, fmt.Errorf("--git-port and --probe-port are both %d: %w", chosen.Git, ErrPortTaken)
	}
	return chosen, nil
}

func isFree(ctx context.Context, port int) bool {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", loopback(port))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
