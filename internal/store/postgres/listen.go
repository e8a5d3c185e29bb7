// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// Listener receives events as their transactions commit, in the order in which
// they commit. It is one connection: what is committed while there is none is
// not heard, and has to be fetched with ChangesSince. It is not for use by
// several goroutines at once.
type Listener struct {
	conn  *pgx.Conn
	close func()
}

// Listen opens a connection of its own and begins to listen. Events that commit
// after Listen has returned are heard; so listening first and asking
// ChangesSince next leaves no gap.
func (s *Store) Listen(ctx context.Context) (*Listener, error) {
	conn, err := pgx.ConnectConfig(ctx, s.config.Copy())
	if err != nil {
		return nil, store.Explain(ctx, dialect{}, "connect to listen for changes", err)
	}
	l := &Listener{conn: conn, close: closing(ctx, conn)}
	if _, err := conn.Exec(ctx, `LISTEN weir_change`); err != nil {
		return nil, errors.Join(store.Explain(ctx, dialect{}, "listen for changes", err), l.Close())
	}
	return l, nil
}

// payload is the JSON that the trigger sends.
type payload struct {
	Seq      int64               `json:"seq"`
	Topic    store.Topic         `json:"topic"`
	Tenant   domain.TenantID     `json:"tenant"`
	Key      string              `json:"key"`
	Type     domain.ResourceType `json:"type"`
	Resource string              `json:"resource"`
	State    string              `json:"state"`
	Instance domain.InstanceID   `json:"instance"`
}

// Next waits for an event. An error that matches domain.ErrUnavailable ends the
// listener; store.ErrBadNotification and the end of the context do not.
func (l *Listener) Next(ctx context.Context) (store.Event, error) {
	heard, err := l.conn.WaitForNotification(ctx)
	if err != nil {
		return store.Event{}, store.Explain(ctx, dialect{}, "wait for a change", err)
	}
	var p payload
	if json.Unmarshal([]byte(heard.Payload), &p) != nil || p.Seq == 0 {
		return store.Event{}, store.ErrBadNotification
	}
	return store.Event{
		Sequence: p.Seq, Topic: p.Topic, Tenant: p.Tenant, Key: p.Key,
		ResourceType: p.Type, Resource: p.Resource, State: p.State, Instance: p.Instance,
	}, nil
}

// Ping says whether the connection still reaches the server. A listener that
// hears nothing cannot tell silence from a dead peer; this can.
func (l *Listener) Ping(ctx context.Context) error {
	if err := l.conn.Ping(ctx); err != nil {
		return store.Explain(ctx, dialect{}, "reach the database", err)
	}
	return nil
}

// Close ends the connection.
func (l *Listener) Close() error {
	l.close()
	return nil
}

// closing gives the function that says goodbye on a connection, for at most a
// moment and also after the context it was opened with has ended: the
// connection may be dead, and its socket is closed either way.
func closing(ctx context.Context, conn *pgx.Conn) func() {
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}
}
