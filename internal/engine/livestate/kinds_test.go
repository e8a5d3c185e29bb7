// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// answers is a server's discovery.
type answers struct {
	discovery.DiscoveryInterfaceWithContext
	lists []*metav1.APIResourceList
	err   error
}

// ServerPreferredResourcesWithContext gives what the test wants.
func (a answers) ServerPreferredResourcesWithContext(context.Context) ([]*metav1.APIResourceList, error) {
	return a.lists, a.err
}

func serves(version, kind string) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{{Name: "x", Kind: kind, Verbs: metav1.Verbs{"list", "watch"}}}}
}

func TestDiscover(t *testing.T) {
	down := errors.New("down")
	silent := func(group, version string) error {
		return &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: group, Version: version}: down}}
	}
	known := served{}
	known.add(schema.GroupVersion{Version: "v1"}, serves("v1", "Pod").APIResources[0])
	known.add(schema.GroupVersion{Group: "a.io", Version: "v2"}, serves("a.io/v2", "A").APIResources[0])
	core := serves("v1", "Pod")
	for _, test := range []struct {
		name   string
		answer answers
		want   []string
		failed int
		err    error
	}{
		{"all answer", answers{lists: []*metav1.APIResourceList{core, serves("b.io/v1", "B")}}, []string{"Pod v1", "B.b.io v1"}, 0, nil},
		{"a known group is silent: it stays", answers{lists: []*metav1.APIResourceList{core}, err: silent("a.io", "v2")}, []string{"Pod v1", "A.a.io v2"}, 1, nil},
		{
			"its preferred version is silent: the other one is not taken",
			answers{lists: []*metav1.APIResourceList{core, serves("a.io/v1", "A")}, err: silent("a.io", "v2")},
			[]string{"Pod v1", "A.a.io v2"},
			1, nil,
		},
		{"an unknown group is silent", answers{lists: []*metav1.APIResourceList{core}, err: silent("c.io", "v1")}, []string{"Pod v1"}, 1, nil},
		{"the core group is silent", answers{err: silent("", "v1")}, []string{"Pod v1"}, 1, nil},
		{"the core group is not named", answers{lists: []*metav1.APIResourceList{serves("b.io/v1", "B")}}, nil, 0, errNoCore},
		{"nothing answers", answers{err: down}, nil, 0, down},
	} {
		t.Run(test.name, func(t *testing.T) {
			now, failed, err := discover(t.Context(), test.answer, known)
			if !errors.Is(err, test.err) || len(failed) != test.failed {
				t.Errorf("failed %v, %v", failed, err)
			}
			var got []string
			for gk, r := range now {
				got = append(got, gk.String()+" "+r.Version)
			}
			wantSame(t, "served", got, test.want)
		})
	}
}
