// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func TestCache(t *testing.T) {
	c := NewCache(10)
	a, b := Hash{1}, Hash{2}
	c.Add(a, "u", "1")
	for _, test := range []struct {
		hash    Hash
		uid     types.UID
		version string
		want    bool
	}{{a, "u", "1", true}, {b, "u", "1", false}, {a, "v", "1", false}, {a, "u", "2", false}, {a, "", "1", false}} {
		if got := c.Equal(test.hash, test.uid, test.version); got != test.want {
			t.Errorf("%+v is %v", test, got)
		}
	}
	c.Add(a, "", "1")
	c.Add(a, "w", "")
	if c.Equal(a, "w", "") || c.Len() != 1 {
		t.Error("remembers what has no identity")
	}
	c.Add(b, "u", "2")
	if c.Equal(a, "u", "1") || !c.Equal(b, "u", "2") {
		t.Error("does not keep the last one judged")
	}
	c.Forget("u")
	if c.Equal(b, "u", "2") || c.Len() != 0 {
		t.Error("does not forget")
	}
}

// TestCacheModel: never more than the limit, never wrong, and what was just used stays.
func TestCacheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(2, 9).Draw(t, "limit")
		c := NewCache(limit)
		model := map[types.UID]judged{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			uid := types.UID(fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "uid")))
			hash, version := Hash{byte(rapid.IntRange(0, 1).Draw(t, "hash"))}, fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "version"))
			switch rapid.IntRange(0, 2).Draw(t, "do") {
			case 0:
				c.Add(hash, uid, version)
				model[uid] = judged{hash, version}
				if !c.Equal(hash, uid, version) {
					t.Fatal("does not know what was just added")
				}
			case 1:
				if c.Equal(hash, uid, version) && model[uid] != (judged{hash, version}) {
					t.Fatal("knows what was not added")
				}
			case 2:
				c.Forget(uid)
				delete(model, uid)
			}
			if c.Len() > limit {
				t.Fatalf("remembers %d, limit %d", c.Len(), limit)
			}
		}
	})
}
