// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/kubeconfig"
)

// bombs are small files that could become large in memory.
func bombs() map[string]string {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat("*"+string(c-1)+",", 10))
	}
	var keys, narrow strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&keys, "%x: 1\n", i)
	}
	narrow.WriteString("a:")
	for i := range 100_000 {
		if i%250 == 0 {
			narrow.WriteString("\n-")
		}
		fmt.Fprintf(&narrow, "\n  %x:", i)
	}
	return map[string]string{
		"many keys":                   keys.String(),
		"many keys in many mappings":  narrow.String(),
		"one long text, many aliases": "a: &a " + strings.Repeat("y", 500_000) + "\nb: [" + strings.Repeat("*a,", 100_000) + "]",
		"aliases of aliases":          laughs,
		"an alias to itself":          "a: &a [*a]",
		"an alias as a key":           "a: &a x\n*a : y",
		"a merged mapping":            "a: &a {x: y}\nb: {<<: *a}",
		"deep lists":                  strings.Repeat("[", 1_000_000),
		"deep lists, closed":          strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000),
		"deep mappings":               strings.Repeat("{a: ", 250_000),
		"deep entries":                strings.Repeat("- ", 500_000),
		"deep keys":                   strings.Repeat("? ", 500_000),
		"many anchors":                "a: [" + strings.Repeat("&a b,", 150_000) + "]",
		"many lists":                  "a: [" + strings.Repeat("[],", 300_000) + "]",
	}
}

func TestSmallFilesStaySmall(t *testing.T) {
	for name, data := range bombs() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := kubeconfig.Sanitise([]byte(data), apiURL, kubeconfig.Options{})
			runtime.ReadMemStats(&after)
			switch reasonOf(t, err) {
			case v1alpha1.ReasonUnableToParseKubeconfigData, v1alpha1.ReasonUnableToLocateContext:
			default:
				t.Errorf("got %v", err)
			}
			allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%d bytes became %d MiB", len(data), allocated)
			if allocated > 512 {
				t.Errorf("%d bytes became %d MiB", len(data), allocated)
			}
		})
	}
}

func TestValuesStayWhatWasWritten(t *testing.T) {
	data := strings.ReplaceAll(config("", ""), "name: admin", "name: 2020-01-02")
	data = strings.ReplaceAll(data, "user: admin", "user: 2020-01-02")
	access, err := kubeconfig.Sanitise([]byte(strings.Replace(data, canary, "2021-03-04", 1)), apiURL, kubeconfig.Options{})
	if err != nil || access.Token != "2021-03-04" {
		t.Errorf("got %q, %v", access.Token, err)
	}
}
