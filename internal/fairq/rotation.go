// SPDX-License-Identifier: Apache-2.0

package fairq

// workspace is one tenant's part of the queue: its line of ready items, how many of its items run, and its waits.
type workspace[K Keyed] struct {
	name string

	first, last *item[K] // the line
	ready       int
	running     int

	// Place in the rotation, and how many more items it may have before it goes to the back.
	inRotation bool
	turns      int
	behind     *workspace[K]

	waits waits[K]
}

func (w *workspace[K]) push(it *item[K]) {
	if w.last == nil {
		w.first = it
	} else {
		w.last.behind = it
	}
	w.last = it
	w.ready++
}

func (w *workspace[K]) pop() *item[K] {
	it := w.first
	w.first, it.behind = it.behind, nil
	if w.first == nil {
		w.last = nil
	}
	w.ready--
	return it
}

// mayRun tells whether an item of w may be handed out now; limit 0 is no limit.
func (w *workspace[K]) mayRun(limit int) bool {
	return w.ready > 0 && (limit == 0 || w.running < limit)
}

func (w *workspace[K]) isIdle() bool { return w.ready == 0 && w.running == 0 }

// rotation is the line of the workspaces that have an item which may run now, and only of those, so that the front can
// always be served and Get never searches.
//
// A plain line is enough. A workspace stops having such an item only by being served (its line is empty, or its cap is
// reached), and the one that is served stands at the front. So nobody ever leaves from the middle.
type rotation[K Keyed] struct {
	weight      func(workspace string) int
	front, back *workspace[K]
	len         int
}

// join puts w at the back with all its turns. w is not in the rotation and has an item that may run.
func (r *rotation[K]) join(w *workspace[K]) {
	w.turns = 1
	if r.weight != nil {
		w.turns = max(1, r.weight(w.name))
	}
	w.inRotation = true
	if r.back == nil {
		r.front = w
	} else {
		r.back.behind = w
	}
	r.back = w
	r.len++
}

// served is told that the front had an item, and whether it has another one that may run.
func (r *rotation[K]) served(mayRun bool) {
	w := r.front
	w.turns--
	if mayRun && w.turns > 0 {
		return
	}
	r.leave()
	if mayRun {
		r.join(w)
	}
}

func (r *rotation[K]) leave() {
	w := r.front
	r.front, w.behind = w.behind, nil
	if r.front == nil {
		r.back = nil
	}
	w.inRotation = false
	r.len--
}
