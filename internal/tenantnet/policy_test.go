// SPDX-License-Identifier: Apache-2.0

package tenantnet

import (
	"errors"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func judgeOf(t *testing.T, p Policy) judge {
	t.Helper()
	j, err := newJudge(p)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestVerdictOfTheStrictestPolicy(t *testing.T) {
	j := judgeOf(t, Policy{})
	for address, want := range map[string]Kind{
		"8.8.8.8": "", "140.82.121.4": "", "2606:4700::1111": "", "172.15.255.255": "", "172.32.0.0": "", "100.63.255.255": "", "100.128.0.0": "",
		"127.0.0.1": KindLoopback, "127.255.255.254": KindLoopback, "::1": KindLoopback,
		"169.254.169.254": KindMetadata, "169.254.170.2": KindMetadata, "169.254.170.23": KindMetadata,
		"fd00:ec2::254": KindMetadata, "fd00:ec2::23": KindMetadata, "fd20:ce::254": KindMetadata,
		"100.100.100.200": KindMetadata, "168.63.129.16": KindMetadata, "192.0.0.192": KindMetadata,
		"169.254.1.1": KindLinkLocal, "fe80::1": KindLinkLocal, "febf::1": KindLinkLocal,
		"10.0.0.1": KindPrivate, "172.16.0.1": KindPrivate, "172.31.255.255": KindPrivate, "192.168.1.1": KindPrivate, "fc00::1": KindPrivate, "fdff::1": KindPrivate,
		"100.64.0.1": KindSharedNAT, "100.127.255.255": KindSharedNAT,
		"0.0.0.0": KindUnspecified, "0.1.2.3": KindUnspecified, "::": KindUnspecified,
		"224.0.0.1": KindMulticast, "239.255.255.255": KindMulticast, "ff02::1": KindMulticast, "ff0e::1": KindMulticast,
		"255.255.255.255": KindBroadcast,
		"192.0.2.1":       KindDocumentation, "198.51.100.1": KindDocumentation, "203.0.113.1": KindDocumentation, "2001:db8::1": KindDocumentation, "3fff::1": KindDocumentation,
		"198.18.0.1": KindBenchmark, "198.19.255.255": KindBenchmark, "2001:2::1": KindBenchmark,
		"192.0.0.1": KindReserved, "192.88.99.1": KindReserved, "240.0.0.1": KindReserved, "2001::1": KindReserved,
		"::7f00:1": KindReserved, "::ffff:0:7f00:1": KindReserved, "fec0::1": KindReserved, "100::1": KindReserved, "4000::1": KindReserved, "64:ff9b:1::7f00:1": KindReserved,
		"::ffff:127.0.0.1": KindLoopback, "::ffff:169.254.169.254": KindMetadata, "::ffff:10.1.2.3": KindPrivate, "::ffff:8.8.8.8": "",
		"64:ff9b::7f00:1": KindLoopback, "64:ff9b::169.254.169.254": KindMetadata, "64:ff9b::8.8.8.8": "",
		"2002:7f00:1::1": KindLoopback, "2002:a9fe:a9fe::": KindMetadata, "2002:a00:1::": KindPrivate, "2002:808:808::1": "",
		"fe80::1%eth0": KindZoned, "2606:4700::1111%1": KindZoned,
	} {
		if got := j.verdict(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	if got := j.verdict(netip.Addr{}); got == "" {
		t.Error("the invalid address is allowed")
	}
}

func TestWhatAnOperatorOpens(t *testing.T) {
	prefixes := func(texts ...string) (out []netip.Prefix) {
		for _, text := range texts {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	everything := Policy{AllowPrivate: true, AllowLoopback: true, Allowed: prefixes("0.0.0.0/0", "::/0")}
	for _, c := range []struct {
		name    string
		policy  Policy
		address string
		want    Kind
	}{
		{"private", Policy{AllowPrivate: true}, "10.1.1.1", ""},
		{"private IPv6", Policy{AllowPrivate: true}, "fd12::1", ""},
		{"private, mapped", Policy{AllowPrivate: true}, "::ffff:10.1.1.1", ""},
		{"private is not loopback", Policy{AllowPrivate: true}, "127.0.0.1", KindLoopback},
		{"private is not the shared range", Policy{AllowPrivate: true}, "100.64.0.1", KindSharedNAT},
		{"private is not metadata", Policy{AllowPrivate: true}, "fd00:ec2::254", KindMetadata},
		{"loopback", Policy{AllowLoopback: true}, "127.0.0.1", ""},
		{"loopback IPv6", Policy{AllowLoopback: true}, "::1", ""},
		{"loopback is not private", Policy{AllowLoopback: true}, "10.0.0.1", KindPrivate},
		{"loopback is not unspecified", Policy{AllowLoopback: true}, "0.0.0.0", KindUnspecified},
		{"denied goes before private", Policy{AllowPrivate: true, Denied: prefixes("10.96.0.0/12")}, "10.96.0.1", KindExcluded},
		{"beside denied", Policy{AllowPrivate: true, Denied: prefixes("10.96.0.0/12")}, "10.1.0.1", ""},
		{"denied, mapped", Policy{AllowPrivate: true, Denied: prefixes("10.96.0.0/12")}, "::ffff:10.96.0.1", KindExcluded},
		{"denied, by NAT64", Policy{AllowPrivate: true, Denied: prefixes("10.96.0.0/12")}, "64:ff9b::10.96.0.1", KindExcluded},
		{"denied outside of NAT64", Policy{Denied: prefixes("64:ff9b::/96")}, "64:ff9b::8.8.8.8", KindExcluded},
		{"denied goes before allowed", Policy{Allowed: prefixes("10.0.0.0/8"), Denied: prefixes("10.0.0.0/24")}, "10.0.0.1", KindExcluded},
		{"denied public", Policy{Denied: prefixes("8.8.8.0/24")}, "8.8.8.8", KindExcluded},
		{"allowed", Policy{Allowed: prefixes("100.64.0.0/10")}, "100.64.0.1", ""},
		{"metadata with everything open", everything, "169.254.169.254", KindMetadata},
		{"metadata IPv6 with everything open", everything, "fd00:ec2::254", KindMetadata},
		{"metadata mapped with everything open", everything, "::ffff:169.254.169.254", KindMetadata},
		{"metadata NAT64 with everything open", everything, "64:ff9b::169.254.169.254", KindMetadata},
	} {
		if got := judgeOf(t, c.policy).verdict(netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("%s: %s is %q, want %q", c.name, c.address, got, c.want)
		}
	}
}

// An embedded address is never judged better than the address that it embeds.
func TestEmbeddingOpensNothing(t *testing.T) {
	j := judgeOf(t, Policy{AllowPrivate: true})
	rapid.Check(t, func(t *rapid.T) {
		b := [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address"))
		plain := netip.AddrFrom4(b)
		want := j.verdict(plain)
		mapped := netip.AddrFrom16(plain.As16())
		nat64 := netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: b[0], 13: b[1], 14: b[2], 15: b[3]})
		sixToFour := netip.AddrFrom16([16]byte{0x20, 0x02, b[0], b[1], b[2], b[3]})
		for _, addr := range []netip.Addr{mapped, nat64, sixToFour} {
			if got := j.verdict(addr); got != want {
				t.Fatalf("%s is %q, %s is %q", plain, want, addr, got)
			}
		}
	})
}

func TestPolicyThatCannotBeKept(t *testing.T) {
	for _, prefix := range []netip.Prefix{{}, netip.MustParsePrefix("::ffff:10.0.0.0/104")} {
		for _, p := range []Policy{{Denied: []netip.Prefix{prefix}}, {Allowed: []netip.Prefix{prefix}}} {
			if _, err := NewDialer(p); !errors.Is(err, ErrPolicy) {
				t.Errorf("%v: %v, want %v", p, err, ErrPolicy)
			}
		}
	}
}
