// SPDX-License-Identifier: Apache-2.0

package tenantnet

import "net/netip"

// specialRanges lists what is not the public Internet, after IANA's registries
// of special-purpose addresses. The first match counts, so metadata services come
// first: they lie inside link-local, private, shared and even public ranges.
func specialRanges() []addressRange {
	byKind := []struct {
		kind     Kind
		prefixes []string
	}{
		{KindMetadata, []string{
			"169.254.169.254/32", // most clouds
			"169.254.170.0/24",   // AWS: credentials of containers and pods
			"100.100.100.200/32", // Alibaba
			"168.63.129.16/32",   // Azure: its agent's endpoint, outside all special ranges
			"192.0.0.192/32",     // Oracle
			"fd00:ec2::/32",      // AWS: metadata at ::254, pod identity at ::23
			"fd20:ce::254/128",   // Google
		}},
		{KindUnspecified, []string{"0.0.0.0/8", "::/128"}},
		{KindLoopback, []string{"127.0.0.0/8", "::1/128"}},
		{KindLinkLocal, []string{"169.254.0.0/16", "fe80::/10"}},
		{KindPrivate, []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"}},
		{KindSharedNAT, []string{"100.64.0.0/10"}},
		{KindMulticast, []string{"224.0.0.0/4", "ff00::/8"}},
		{KindBroadcast, []string{"255.255.255.255/32"}},
		{KindDocumentation, []string{"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"}},
		{KindBenchmark, []string{"198.18.0.0/15", "2001:2::/48"}},
		{KindReserved, []string{
			"192.0.0.0/24",   // protocol assignments
			"192.88.99.0/24", // 6to4 relays, withdrawn
			"240.0.0.0/4",
			"2001::/23", // protocol assignments, with Teredo, which hides an IPv4 address
		}},
	}
	var ranges []addressRange
	for _, group := range byKind {
		for _, prefix := range group.prefixes {
			ranges = append(ranges, addressRange{prefix: netip.MustParsePrefix(prefix), kind: group.kind})
		}
	}
	return ranges
}
