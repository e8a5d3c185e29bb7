// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

func rotate(t testing.TB, source seal.Writable, keys seal.DataKeys, o seal.RotateOptions) seal.Rotation {
	t.Helper()
	r, err := seal.Rotate(t.Context(), source, keys, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func same[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// tenants gives n tenants a value each, and a function that sees them open.
func tenants(t testing.TB, s *seal.Sealer, n int) func(*seal.Sealer) {
	t.Helper()
	values := make(map[seal.Place]seal.Sealed)
	for i := range n {
		p := place(domain.TenantID(fmt.Sprintf("tenant-%04d", i)), "1")
		values[p] = sealed(t, s, p, canary+string(p.Tenant))
	}
	return func(s *seal.Sealer) {
		t.Helper()
		for p, v := range values {
			opens(t, s, p, v, canary+string(p.Tenant))
		}
	}
}

func TestRotation(t *testing.T) {
	db, _ := newSQLite(t)
	source := newRingFile(t)
	s := newSealer(t, source, db)
	const n = 450 // more than two pages
	check := tenants(t, s, n)
	first := load(t, source).Primary()

	var progress []seal.Progress
	r := rotate(t, source, db, seal.RotateOptions{Progress: func(p seal.Progress) { progress = append(progress, p) }})
	second := load(t, source).Primary()
	if second == first {
		t.Fatal("no new primary")
	}
	same(t, "the rotation", seal.Rotation{Primary: second, Rewrapped: n}, r)
	same(t, "progress", []seal.Progress{
		{Primary: second, Done: 200, Total: n}, {Primary: second, Done: 400, Total: n}, {Primary: second, Done: n, Total: n},
	}, progress)
	same(t, "the ring keeps the old key", []string{second, first}, load(t, source).KeyIDs())
	check(s)                        // with the ring of before, and all in memory
	check(newSealer(t, source, db)) // with the ring of now

	r = rotate(t, source, db, seal.RotateOptions{Prune: true})
	third := load(t, source).Primary()
	same(t, "with pruning", seal.Rotation{Primary: third, Rewrapped: n, Dropped: []string{second, first}}, r)
	same(t, "the ring", []string{third}, load(t, source).KeyIDs())
	check(newSealer(t, source, db))
	counts, err := db.CountDataKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what wraps the data keys", map[string]int{third: n}, counts)
}

// A process that read the ring before a rotation goes on after it: it opens what
// the new key wraps, and makes data keys that the pruned ring can unwrap.
func TestRotationReachesOldProcesses(t *testing.T) {
	db, _ := newSQLite(t)
	source := newRingFile(t)
	check := tenants(t, newSealer(t, source, db), 3)
	counting := &countingSource{Source: source}
	old := newSealer(t, counting, db)
	rotate(t, source, db, seal.RotateOptions{Prune: true})

	check(old)
	if n := counting.loads.Load(); n != 2 {
		t.Errorf("read the ring %d times, want once at the start and once for the new key", n)
	}
	// Once more, without having met the new key: the database refuses the retired one.
	old = newSealer(t, counting, db)
	rotate(t, source, db, seal.RotateOptions{Prune: true})
	p := place("newcomer", "1")
	v := sealed(t, old, p, canary)
	opens(t, newSealer(t, source, db), p, v, canary)
}

// Several processes seal and open, for old and new tenants, while the ring is
// rotated and pruned again and again. In the end a process that knows nothing but
// the last ring opens everything.
func TestRotationOnline(t *testing.T) {
	dsn := pg.Shared(t).NewDatabase(t)
	source := newRingFile(t)
	type entry struct {
		p seal.Place
		v seal.Sealed
	}
	var (
		wg      sync.WaitGroup
		entries [3][]entry
		errs    [3]error
	)
	ctx, stop := context.WithCancel(t.Context())
	started := make(chan struct{}, len(entries))
	for i := range entries {
		s := newSealer(t, source, newPostgres(t, dsn))
		work := func(n int) error {
			// Every tenth is a new tenant; the others are all three workers' tenants.
			p := place(domain.TenantID(fmt.Sprintf("shared-%d", n%7)), fmt.Sprintf("%d-%d", i, n))
			if n%10 == 0 {
				p.Tenant = domain.TenantID(fmt.Sprintf("own-%d-%d", i, n))
			}
			v, err := s.Seal(t.Context(), p, []byte(canary+p.Row))
			if err != nil {
				return fmt.Errorf("seal: %w", err)
			}
			s.Forget(p.Tenant) // as if there were more tenants than memory
			entries[i] = append(entries[i], entry{p, v})
			e := entries[i][n/2]
			got, err := s.Open(t.Context(), e.p, e.v)
			if err == nil && string(got) != canary+e.p.Row {
				err = errors.New("opened to something else")
			}
			return err
		}
		wg.Go(func() {
			for n := 0; ctx.Err() == nil && errs[i] == nil; n++ {
				errs[i] = work(n)
				if n == 10 || errs[i] != nil && n < 10 {
					started <- struct{}{}
				}
			}
		})
	}
	for range entries {
		<-started
	}
	operator := newPostgres(t, dsn)
	dropped := 0
	for range 5 {
		dropped += len(rotate(t, source, operator, seal.RotateOptions{Prune: true}).Dropped)
	}
	stop()
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	if dropped == 0 {
		t.Error("nothing was pruned, so nothing was tried")
	}
	rotate(t, source, operator, seal.RotateOptions{Prune: true})
	fresh, total := newSealer(t, source, operator), 0
	for _, mine := range entries {
		for _, e := range mine {
			opens(t, fresh, e.p, e.v, canary+e.p.Row)
			total++
		}
	}
	t.Logf("%d values, %d ring keys dropped", total, dropped)
}

func TestInterruptedRotation(t *testing.T) {
	db, _ := newSQLite(t)
	source := newRingFile(t)
	s := newSealer(t, source, db)
	check := tenants(t, s, 10)
	first := load(t, source).Primary()

	r, err := seal.Rotate(t.Context(), source, &failing{DataKeys: db, left: 4}, seal.RotateOptions{Prune: true})
	wantError(t, "an interrupted rotation", err, errInjected)
	second := load(t, source).Primary()
	same(t, "what it did", seal.Rotation{Primary: second, Rewrapped: 4}, r)
	same(t, "the ring keeps both", []string{second, first}, load(t, source).KeyIDs())
	check(s)
	check(newSealer(t, source, db))

	r = rotate(t, source, db, seal.RotateOptions{})
	same(t, "the next run", seal.Rotation{Primary: second, Resumed: true, Rewrapped: 6}, r)
	// Between retiring a key and dropping it from the ring.
	stuck := &stuckSource{Writable: source, updates: 1}
	r, err = seal.Rotate(t.Context(), stuck, db, seal.RotateOptions{Prune: true})
	wantError(t, "a source that fails", err, errInjected)
	third := load(t, source).Primary()
	same(t, "what was retired is not called dropped", seal.Rotation{Primary: third, Rewrapped: 10}, r)
	same(t, "the ring has them still", []string{third, second, first}, load(t, source).KeyIDs())
	check(newSealer(t, source, db))
	r = rotate(t, source, db, seal.RotateOptions{Prune: true})
	same(t, "and the next run drops them", []string{third, second, first}, r.Dropped)
	check(newSealer(t, source, db))
}

// stuckSource lets a number of updates succeed.
type stuckSource struct {
	seal.Writable
	updates int
}

func (s *stuckSource) Update(ctx context.Context, change func(*seal.Ring) (*seal.Ring, error)) (*seal.Ring, error) {
	if s.updates == 0 {
		return nil, errInjected
	}
	s.updates--
	return s.Writable.Update(ctx, change)
}

// One tenant's data key is damaged, another's was wrapped by a ring that is lost:
// the others are rotated all the same, and the two are named.
func TestRotationPastDamage(t *testing.T) {
	db, path := newSQLite(t)
	source := newRingFile(t)
	check := tenants(t, newSealer(t, source, db), 3)
	sealed(t, newSealer(t, source, db), place("damaged", "1"), canary)
	first := load(t, source).Primary()
	raw := openRaw(t, "sqlite", path)
	if _, err := raw.ExecContext(t.Context(), `UPDATE data_key SET wrapped = x'0102' WHERE tenant = 'damaged'`); err != nil {
		t.Fatal(err)
	}
	sealed(t, newSealer(t, newRingFile(t), db), place("lost", "1"), canary)
	lost, err := db.TenantDataKey(t.Context(), "lost")
	if err != nil {
		t.Fatal(err)
	}

	for range 2 { // damage must not keep a later run from making a new key
		before := load(t, source).Primary()
		r, err := seal.Rotate(t.Context(), source, db, seal.RotateOptions{Prune: true})
		wantError(t, "the damaged one", err, seal.ErrNotAuthentic)
		wantError(t, "the lost one", err, seal.ErrUnknownKey)
		for _, words := range []string{"damaged", "lost", lost.RingKey} {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("the message %q does not say %q", err, words)
			}
		}
		if r.Rewrapped != 3 || r.Primary == before {
			t.Errorf("the others were not rotated: %+v", r)
		}
		same(t, "what the damaged one needs stays", []string{first}, r.InUse)
		check(newSealer(t, source, db))
	}
}

// A ring from a backup whose primary has been retired since: nothing is sealed that
// the newer ring could not open, and rotating puts it right.
func TestOldRingFromBackup(t *testing.T) {
	db, _ := newSQLite(t)
	source := newRingFile(t)
	backup := load(t, source)
	rotate(t, source, db, seal.RotateOptions{Prune: true})
	if _, err := source.Update(t.Context(), func(*seal.Ring) (*seal.Ring, error) { return backup, nil }); err != nil {
		t.Fatal(err)
	}
	s := newSealer(t, source, db)
	_, err := s.Seal(t.Context(), place("alice", "1"), []byte(canary))
	wantError(t, "sealing with an old ring", err, seal.ErrOldRing)
	if err == nil || !strings.Contains(err.Error(), "weir keys rotate") {
		t.Errorf("the message %q does not say what to do", err)
	}
	rotate(t, source, db, seal.RotateOptions{})
	opens(t, s, place("alice", "1"), sealed(t, newSealer(t, source, db), place("alice", "1"), canary), canary)
}

// gone removes a data key just before it is wrapped anew.
type gone struct {
	seal.DataKeys
	remove func(id string)
}

func (g *gone) RewrapDataKey(ctx context.Context, was store.DataKey, ringKey string, wrapped []byte) error {
	g.remove(was.ID)
	return g.DataKeys.RewrapDataKey(ctx, was, ringKey, wrapped)
}

func TestTenantGoesDuringRotation(t *testing.T) {
	db, path := newSQLite(t)
	source := newRingFile(t)
	tenants(t, newSealer(t, source, db), 3)
	raw := openRaw(t, "sqlite", path)
	r := rotate(t, source, &gone{db, func(id string) {
		if _, err := raw.ExecContext(t.Context(), `DELETE FROM data_key WHERE id = $1 AND tenant = 'tenant-0001'`, id); err != nil {
			t.Error(err)
		}
	}}, seal.RotateOptions{Prune: true})
	if r.Rewrapped != 2 || len(r.Dropped) != 1 {
		t.Errorf("%+v, want two wrapped anew and one ring key dropped", r)
	}
}

// hasty rotates and prunes at the worst moments: just before a data key is added, and
// just after one is read.
type hasty struct {
	seal.DataKeys
	left   int
	rotate func()
}

func (h *hasty) now() {
	if h.left > 0 {
		h.left--
		h.rotate()
	}
}

func (h *hasty) AddDataKey(ctx context.Context, k store.DataKey) (store.DataKey, error) {
	h.now()
	return h.DataKeys.AddDataKey(ctx, k)
}

func (h *hasty) DataKey(ctx context.Context, tenant domain.TenantID, id string) (store.DataKey, error) {
	defer h.now()
	return h.DataKeys.DataKey(ctx, tenant, id)
}

func TestRotationsThatOvertake(t *testing.T) {
	db, _ := newSQLite(t)
	source := newRingFile(t)
	keys := &hasty{DataKeys: db, rotate: func() { rotate(t, source, db, seal.RotateOptions{Prune: true}) }}
	s := newSealer(t, source, keys)
	p := place("alice", "1")
	keys.left = 3
	v := sealed(t, s, p, canary)
	opens(t, newSealer(t, source, db), p, v, canary)

	// One that knows neither the key that wraps the row, nor the one after it.
	s = newSealer(t, source, keys)
	keys.rotate()
	keys.left = 2
	opens(t, s, p, v, canary)
	if keys.left != 0 {
		t.Errorf("%d rotations did not happen", keys.left)
	}
}

// Two operators rotate at once: both succeed, or one is told to run it again, and
// everything opens.
func TestTwoRotationsAtOnce(t *testing.T) {
	dsn := pg.Shared(t).NewDatabase(t)
	source := newRingFile(t)
	db := newPostgres(t, dsn)
	check := tenants(t, newSealer(t, source, db), 40)
	var (
		wg   sync.WaitGroup
		errs [3]error
	)
	for i := range errs {
		keys := newPostgres(t, dsn)
		wg.Go(func() {
			_, errs[i] = seal.Rotate(t.Context(), source, keys, seal.RotateOptions{Prune: true})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, seal.ErrOldRing) {
			t.Error(err)
		}
	}
	check(newSealer(t, source, db))
	rotate(t, source, db, seal.RotateOptions{Prune: true})
	check(newSealer(t, source, db))
}
