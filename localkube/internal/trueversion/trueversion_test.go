// SPDX-License-Identifier: Apache-2.0

package trueversion

import (
	"strings"
	"testing"

	clientversion "k8s.io/client-go/pkg/version"
	"k8s.io/component-base/version"
)

// TestStamp shows that the linknames reach the variables. A test binary has no
// list of modules, so the placeholder is still there at first; that the real
// binary says its true version is shown by the end-to-end test.
func TestStamp(t *testing.T) {
	if got := version.Get().GitVersion; !strings.HasPrefix(got, placeholder) {
		t.Skipf("stamped with linker flags: %s", got)
	}
	stamp("not a version")
	if got := version.Get().GitVersion; !strings.HasPrefix(got, placeholder) {
		t.Fatalf("stamped with nonsense: %s", got)
	}
	stamp("v1.36.3")
	stamp("v1.99.9") // not over a true version
	base, client := version.Get(), clientversion.Get()
	if base.GitVersion != "v1.36.3" || base.Major != "1" || base.Minor != "36" {
		t.Errorf("component-base says %s (%s.%s)", base.GitVersion, base.Major, base.Minor)
	}
	if client.GitVersion != "v1.36.3" || client.Major != "1" || client.Minor != "36" {
		t.Errorf("client-go says %s (%s.%s)", client.GitVersion, client.Major, client.Minor)
	}
}

func TestMajorMinor(t *testing.T) {
	for _, tc := range []struct {
		release, major, minor string
		ok                    bool
	}{
		{"v1.36.3", "1", "36", true},
		{"v1.37.0-rc.1", "1", "37", true},
		{"v1.36", "", "", false},
		{"(devel)", "", "", false},
		{"", "", "", false},
	} {
		major, minor, ok := majorMinor(tc.release)
		if major != tc.major || minor != tc.minor || ok != tc.ok {
			t.Errorf("majorMinor(%q) = %q, %q, %v", tc.release, major, minor, ok)
		}
	}
}
