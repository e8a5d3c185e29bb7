// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errNotFound: nothing under that name.
var errNotFound = errors.New("not found")

// notFound says that there is no such object, and which names are close. The
// names are a courtesy: who may not list gets none.
func (s *session) notFound(ctx context.Context, k *kind, name string) error {
	remedy := fmt.Sprintf("see: %s get %s", s.program, k.plural)
	list := k.list()
	if err := s.api.List(ctx, list, client.InNamespace(s.namespace)); err == nil {
		items, _ := itemsOf(list, k)
		if near := closest(name, namesOf(items)); len(near) > 0 {
			remedy = fmt.Sprintf("did you mean %s?", choice(near))
		}
	}
	return fmt.Errorf("%s %q %w in namespace %q; %s", k.singular, name, errNotFound, s.namespace, remedy)
}

func namesOf(items []client.Object) []string {
	var names []string
	for _, o := range items {
		names = append(names, o.GetName())
	}
	return names
}

// closest gives up to three names that somebody may have meant: those at most
// one slip in three characters away, and those that the word begins.
func closest(word string, names []string) []string {
	allowed := max(1, len(word)/3)
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	for _, name := range names {
		distance := edits(word, name)
		if strings.HasPrefix(name, word) {
			distance = min(distance, 1)
		}
		if distance <= allowed {
			near = append(near, candidate{name, distance})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		return strings.Compare(a.name, b.name)
	})
	var found []string
	for _, c := range near[:min(3, len(near))] {
		found = append(found, c.name)
	}
	return found
}

// edits is Levenshtein's distance: how many characters to add, take out or
// change. One row of the usual table is enough, with the diagonal kept aside.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
