// SPDX-License-Identifier: Apache-2.0

// Package trueversion makes the Kubernetes programs report the version they
// were built from.
//
// A Kubernetes release stamps its version with linker flags. Built as a
// dependency, without those flags, every program says v0.0.0-master, and a
// Helm chart with a kubeVersion constraint refuses to render against such an
// API server. The Go toolchain knows the truth, because it records the version
// of every module in the binary: this package reads it there and writes it
// into the variables that the linker flags would have set. A binary that was
// stamped by flags is left as it is.
//
// # Why a linkname
//
// component-base has SetDynamicVersion for this purpose, but it accepts only a
// version with the major, minor and patch number of the one linked in, so it
// cannot lead away from 0.0.0. The variables are not exported; a pull linkname
// to a package outside the standard library is the one way that works without
// flags, and a renamed variable fails the link or the test of this package, not a
// running cluster.
//
// # Why this is early enough
//
// Some packages read the version while they are initialised (the metrics
// registries do). Go initialises, among the packages whose imports are all
// done, the one whose path sorts first. This package imports only
// component-base/version and client-go's pkg/version beside the standard
// library, and its path sorts before k8s.io, so its init runs before that of
// any k8s.io package that could read the version.
package trueversion

import (
	"runtime/debug"
	"strings"
	_ "unsafe" // for go:linkname

	clientversion "k8s.io/client-go/pkg/version"
	"k8s.io/component-base/version"
)

// kubernetesModule is the module whose version is that of the whole release.
const kubernetesModule = "k8s.io/kubernetes"

// placeholder is how the version starts in a build without linker flags.
const placeholder = "v0.0.0-"

//go:linkname baseGitVersion k8s.io/component-base/version.gitVersion
var baseGitVersion string

//go:linkname baseGitMajor k8s.io/component-base/version.gitMajor
var baseGitMajor string

//go:linkname baseGitMinor k8s.io/component-base/version.gitMinor
var baseGitMinor string

//go:linkname clientGitVersion k8s.io/client-go/pkg/version.gitVersion
var clientGitVersion string

//go:linkname clientGitMajor k8s.io/client-go/pkg/version.gitMajor
var clientGitMajor string

//go:linkname clientGitMinor k8s.io/client-go/pkg/version.gitMinor
var clientGitMinor string

func init() {
	if release, ok := linkedRelease(); ok {
		stamp(release)
	}
}

// stamp sets both versions where they are still the placeholder.
func stamp(release string) {
	major, minor, ok := majorMinor(release)
	if !ok {
		return
	}
	if strings.HasPrefix(version.Get().GitVersion, placeholder) {
		baseGitVersion, baseGitMajor, baseGitMinor = release, major, minor
		// The variable was copied when its package was initialised; setting the
		// dynamic version to the variable's own value is always accepted.
		if err := version.SetDynamicVersion(release); err != nil {
			panic("localkube: " + err.Error())
		}
	}
	if strings.HasPrefix(clientversion.Get().GitVersion, placeholder) {
		clientGitVersion, clientGitMajor, clientGitMinor = release, major, minor
	}
}

// linkedRelease is the version of the Kubernetes module in this binary, and
// false where the binary holds none (a unit test of another package) or a
// local copy without a version.
func linkedRelease() (string, bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, dep := range info.Deps {
		if dep.Path != kubernetesModule {
			continue
		}
		if dep.Replace != nil {
			dep = dep.Replace
		}
		return dep.Version, strings.HasPrefix(dep.Version, "v")
	}
	return "", false
}

// majorMinor splits "v1.36.3" into "1" and "36".
func majorMinor(release string) (major, minor string, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(release, "v"), ".", 3)
	if len(parts) < 3 {
		return "", "", false
	}
	return parts[0], parts[1], true
}
