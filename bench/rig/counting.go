// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Tally counts what the roles ask of the database and of the API server.
type Tally struct {
	rig      *Rig
	requests Counts // of the roles, up to the beginning
}

// Count begins a tally. Only one can be open at a time, because beginning one
// sets PostgreSQL's statistics back.
func (r *Rig) Count(ctx context.Context) (*Tally, error) {
	requests, err := r.roleRequests(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.postgres.ResetStatements(ctx); err != nil {
		return nil, err
	}
	return &Tally{rig: r, requests: requests}, nil
}

// Statements gives what the roles had PostgreSQL execute since the tally began.
func (t *Tally) Statements(ctx context.Context) (Counts, error) {
	all, err := t.rig.postgres.Statements(ctx, serviceDatabase)
	if err != nil {
		return nil, fmt.Errorf("count SQL statements: %w", err)
	}
	counts := make(Counts)
	for _, s := range all {
		counts[strings.Join(strings.Fields(s.Text), " ")] += s.Calls
	}
	return counts, nil
}

// Requests gives what the roles asked the API server since the tally began.
func (t *Tally) Requests(ctx context.Context) (Counts, error) {
	now, err := t.rig.roleRequests(ctx)
	if err != nil {
		return nil, err
	}
	return now.Less(t.requests), nil
}

// roleRequests are all requests that the API server has answered, less our own.
// A request is counted when it has been answered, so both numbers agree only while
// this process has none under way.
func (r *Rig) roleRequests(ctx context.Context) (Counts, error) {
	m, err := scrape(ctx, r.http, strings.TrimSuffix(r.config.Host, "/")+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("count API requests: %w", err)
	}
	return apiServerRequests(m).Less(r.own.snapshot()), nil
}

func getJSON(ctx context.Context, c *http.Client, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, res.Status)
	}
	return json.NewDecoder(res.Body).Decode(into)
}
