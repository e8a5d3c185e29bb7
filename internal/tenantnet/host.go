// SPDX-License-Identifier: Apache-2.0

package tenantnet

import (
	"net/netip"
	"strings"
)

// CheckHost says whether a host has the form of an IP address (without brackets)
// or of a DNS name. It looks nothing up. The error is a *DeniedError.
func CheckHost(host string) error {
	_, _, err := parseHost(host)
	return err
}

// parseHost gives the address that a host is, or else the name that it is, in
// absolute form and lower case.
func parseHost(host string) (addr netip.Addr, name string, err error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr, "", nil
	}
	name = strings.ToLower(strings.TrimSuffix(host, "."))
	if !isName(name) {
		return netip.Addr{}, "", &DeniedError{Host: host, Kind: KindMalformed}
	}
	// No top-level domain is a number. What ends in one is an address in a form
	// that netip rightly refuses and that a system's resolver may still take for
	// loopback: 127.1, 0177.0.0.1, 0x7f.1, 2130706433, 127.0.0.1. with a dot.
	if last := name[strings.LastIndexByte(name, '.')+1:]; isNumber(last) {
		return netip.Addr{}, "", &DeniedError{Host: host, Kind: KindUnusual}
	}
	return netip.Addr{}, name + ".", nil
}

// isName accepts letters, digits, hyphens and underscores in labels. Names in
// other scripts arrive here in their ASCII form or not at all.
func isName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || strings.ContainsFunc(label, notInName) {
			return false
		}
	}
	return true
}

func notInName(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
		return false
	}
	return true
}

// isNumber follows what the C library reads as a number: decimal and octal
// digits, or 0x with hexadecimal digits, or with none.
func isNumber(label string) bool {
	digits := "0123456789"
	if rest, ok := strings.CutPrefix(label, "0x"); ok {
		label, digits = rest, "0123456789abcdef"
	}
	return strings.Trim(label, digits) == ""
}
