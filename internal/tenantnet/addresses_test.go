// SPDX-License-Identifier: Apache-2.0

package tenantnet

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddressesAreJudged(t *testing.T) {
	many := make([]string, 20)
	for i := range many {
		many[i] = fmt.Sprintf("8.8.8.%d", i)
	}
	d := dialerOf(t, Policy{Resolver: &names{answers: map[string][][]string{
		"good.example.":   {{"8.8.8.8", "2606:4700::1"}},
		"mapped.example.": {{"::ffff:8.8.4.4"}},
		"mixed.example.":  {{"8.8.8.8", "127.0.0.1"}},
		"many.example.":   {many},
	}}})
	for host, want := range map[string][]string{
		"good.example": {"8.8.8.8", "2606:4700::1"}, "mapped.example": {"8.8.4.4"}, "1.1.1.1": {"1.1.1.1"}, "many.example": many[:maxTries],
	} {
		addrs, err := d.Addresses(t.Context(), host)
		var got []string
		for _, addr := range addrs {
			got = append(got, addr.String())
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", host, err, diff)
		}
	}
	for host, want := range map[string]error{"mixed.example": ErrDenied, "127.0.0.1": ErrDenied, "0x7f.1": ErrDenied, "nowhere.example": ErrUnreachable} {
		if addrs, err := d.Addresses(t.Context(), host); !errors.Is(err, want) || addrs != nil {
			t.Errorf("%s: %v, %v; want %v", host, addrs, err, want)
		}
	}
	var zero Dialer
	if addrs, err := zero.Addresses(t.Context(), netip.MustParseAddr("8.8.8.8").String()); err == nil {
		t.Errorf("a dialer without a policy gave %v", addrs)
	}
}
