// SPDX-License-Identifier: Apache-2.0

package up

import (
	"errors"
	"net"
	"testing"
)

// take holds a port for the length of the test.
func take(t *testing.T) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestChoosePorts(t *testing.T) {
	taken := take(t)
	free, err := choosePorts(t.Context(), Ports{}, Ports{})
	if err != nil {
		t.Fatal(err)
	}
	const kept = -1 // stands for: the earlier port
	for _, tt := range []struct {
		name           string
		asked, earlier Ports
		want           Ports // 0: any new one
		err            error
	}{
		{name: "the first start"},
		{name: "free ones are kept", earlier: free, want: Ports{Git: kept, Probes: kept}},
		{name: "a taken one is replaced", earlier: Ports{Git: taken, Probes: free.Probes}, want: Ports{Probes: kept}},
		{name: "asked for", asked: Ports{Probes: free.Git}, earlier: free, want: Ports{Probes: free.Git}},
		{name: "asked for, taken", asked: Ports{Git: taken}, err: ErrPortTaken},
		{name: "asked for twice", asked: Ports{Git: free.Git, Probes: free.Git}, err: ErrPortTaken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := choosePorts(t.Context(), tt.asked, tt.earlier)
			if !errors.Is(err, tt.err) {
				t.Fatalf("got %v, want %v", err, tt.err)
			}
			if err != nil {
				return
			}
			for _, port := range []struct {
				name               string
				got, want, earlier int
			}{{"git", got.Git, tt.want.Git, tt.earlier.Git}, {"probes", got.Probes, tt.want.Probes, tt.earlier.Probes}} {
				want := port.want
				if want == kept {
					want = port.earlier
				}
				if want != 0 && port.got != want {
					t.Errorf("%s: got %d, want %d", port.name, port.got, want)
				}
				if want == 0 && (port.got < firstPort || port.got > lastPort) {
					t.Errorf("%s: got %d, want a new one", port.name, port.got)
				}
			}
			if got.Git == got.Probes {
				t.Errorf("both are %d", got.Git)
			}
		})
	}
}
