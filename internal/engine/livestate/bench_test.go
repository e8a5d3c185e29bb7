// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// benchNodes is the size of the cluster in benchmarks: 20,000 objects of 12 kinds
// in 100 namespaces, of which three quarters have an owner.
const benchNodes = 20_000

func benchUID(i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-1234-4abc-8def-%012x", uint32(i)*2654435761, i))
}

// benchObject gives the i-th object. Groups of ten are a tree: a root with three
// children, which have two children each.
func benchObject(i int) (kind int, m *metav1.PartialObjectMetadata) {
	m = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: fmt.Sprintf("team-%03d", i/10%100), Name: fmt.Sprintf("application-%08d-pod", i),
		UID: benchUID(i), ResourceVersion: fmt.Sprint(1_000_000 + i),
		Labels: map[string]string{"app.kubernetes.io/instance": fmt.Sprintf("app-%d", i/10), "pod-template-hash": "0123456789"},
	}}
	at := i % 10
	switch {
	case at == 0:
		return i / 10 % 4, m
	case at <= 3:
		m.OwnerReferences = []metav1.OwnerReference{{UID: benchUID(i - at)}}
		return 4 + at, m
	}
	m.OwnerReferences = []metav1.OwnerReference{{UID: benchUID(i - at + 1 + (at-4)/2)}}
	return 8 + at%4, m
}

func benchStore(labels ...string) (*store, []*scope) {
	s := newStore(labels, nil)
	var scopes []*scope
	for i := range 12 {
		scopes = append(scopes, s.open(schema.GroupKind{Group: "example.com", Kind: fmt.Sprintf("Kind%d", i)}))
	}
	for i := range benchNodes {
		kind, m := benchObject(i)
		s.upsert(scopes[kind], m)
	}
	return s, scopes
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestNodeIsSmall holds the claim of the package documentation.
func TestNodeIsSmall(t *testing.T) {
	before := heap()
	s, _ := benchStore()
	each := float64(heap()-before) / benchNodes
	t.Logf("%.0f bytes a node", each)
	if each > 160 {
		t.Errorf("a node costs %.0f bytes, want at most 160", each)
	}
	runtime.KeepAlive(s)
}

func BenchmarkHeap(b *testing.B) {
	for name, labels := range map[string][]string{"bare": nil, "one-label": {"app.kubernetes.io/instance"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				s, _ := benchStore(labels...)
				b.ReportMetric(float64(heap()-before)/benchNodes, "bytes/node")
				runtime.KeepAlive(s)
			}
		})
	}
}

func BenchmarkIterateAll(b *testing.B) {
	s, _ := benchStore()
	roots, err := s.list(ListOptions{TopLevelOnly: true})
	if err != nil || len(roots) != benchNodes/10 {
		b.Fatalf("%d roots, %v", len(roots), err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := len(s.tree(roots)); got != benchNodes {
			b.Fatal(got)
		}
	}
}

func BenchmarkIterateOne(b *testing.B) {
	s, _ := benchStore()
	roots, _ := s.list(ListOptions{TopLevelOnly: true})
	b.ReportAllocs()
	for b.Loop() {
		if got := len(s.tree(roots[:1])); got != 10 {
			b.Fatal(got)
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	s, scopes := benchStore()
	kind, m := benchObject(7)
	version := 2_000_000
	b.ReportAllocs()
	for b.Loop() {
		version++
		m.ResourceVersion = fmt.Sprint(version)
		if !s.upsert(scopes[kind], m).updated {
			b.Fatal("no update")
		}
	}
}

func BenchmarkList(b *testing.B) {
	s, _ := benchStore()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.list(ListOptions{Namespaces: []string{"team-007"}}); err != nil {
			b.Fatal(err)
		}
	}
}
